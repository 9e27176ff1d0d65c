package charts

import (
	"context"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// pullOptions are the flags of `chart pull`.
type pullOptions struct {
	*cli.Options

	access      *AccessFlags
	destination string
}

func newPullCommand(options *cli.Options) *cobra.Command {
	o := &pullOptions{Options: options}
	cmd := &cobra.Command{
		Use:     "pull oci://REGISTRY/PATH/CHART:VERSION",
		Short:   "Pull a chart from a registry",
		Long:    `Pull a chart from a registry into a file, without changing it, and print the file and its digest.`,
		Example: `  capstan chart pull oci://registry.example.com/capi/infrastructure-aws:2.11.1`,
		Args:    cli.Arguments(1, 1, "the reference of a chart"),
		RunE:    cli.Run(o.run),
	}
	o.access = AddAccessFlags(cmd.Flags())
	addDestinationFlag(cmd.Flags(), &o.destination)

	return cmd
}

// addDestinationFlag adds --destination to a command that writes a chart.
func addDestinationFlag(flags *pflag.FlagSet, destination *string) {
	flags.StringVarP(
		destination,
		"destination",
		"d",
		".",
		"File to write, or folder for a file with the chart's usual name.",
	)
}

func (o *pullOptions) run(ctx context.Context, args []string) error {
	pulled, err := o.access.PullChart(ctx, args[0], o.In)
	if err != nil {
		return err
	}

	file, err := destination(pulled.Chart, o.destination)
	if err != nil {
		return err
	}

	if err := os.WriteFile(file, pulled.Archive, 0o644); err != nil {
		return err
	}

	o.Printf("%s\n%s", file, pulled.Digest)

	return nil
}
