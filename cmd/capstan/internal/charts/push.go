package charts

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/chartgen/supply/oci"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// pushOptions are the flags of `chart push`.
type pushOptions struct {
	*cli.Options

	identity *Identity
	access   *AccessFlags
}

func newPushCommand(options *cli.Options) *cobra.Command {
	o := &pushOptions{Options: options}
	cmd := &cobra.Command{
		Use:   "push {DIR[/VERSION] | CHART.tgz} oci://REGISTRY/PATH",
		Short: "Push a chart to a registry",
		Long: `Push a chart, or the chart of a provider's folder, to oci://REGISTRY/PATH/<chart>:<version>, and
print its reference with the digest. With http:// instead of oci://, the registry is accessed
without TLS.

helm, Flux and Argo CD can install the chart from there, and so can the operator with
--chart-repository oci://REGISTRY/PATH. Pushing the same chart again changes nothing; a tag with
other content is never overwritten.`,
		Example: `  capstan chart push infrastructure-aws-2.11.1.tgz oci://registry.example.com/capi
  capstan chart push providers/infrastructure-aws oci://registry.example.com/capi`,
		Args: cli.Arguments(2, 2, "a provider's folder or a chart, and a repository"),
		RunE: cli.Run(o.run),
	}
	o.identity = AddIdentityFlags(cmd.Flags())
	o.access = AddAccessFlags(cmd.Flags())

	return cmd
}

func (o *pushOptions) run(ctx context.Context, args []string) error {
	repository, err := oci.ParseRepository(args[1])
	if err != nil {
		return err
	}

	c, err := Open(ctx, args[0], o.identity)
	if err != nil {
		return err
	}

	client, err := o.access.Client(repository.Registry, o.In)
	if err != nil {
		return err
	}

	reference := repository.Join(c.Metadata.Name).WithTag(oci.ChartTag(c.Metadata.Version))

	pushed, err := client.PushChart(ctx, reference, c)
	if err != nil {
		return err
	}

	o.Printf("%s\n%s", pushed.Reference, pushed.Digest)

	return nil
}
