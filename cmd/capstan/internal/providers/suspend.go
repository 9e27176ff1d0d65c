package providers

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// suspendOptions are the flags of `suspend` and `resume`.
type suspendOptions struct {
	*cli.Options

	cluster *cli.ClusterFlags
	wait    *cli.WaitFlags
	suspend bool
}

// NewSuspendCommand returns `capstan suspend`.
func NewSuspendCommand(options *cli.Options) *cobra.Command {
	o := &suspendOptions{Options: options, suspend: true}
	cmd := &cobra.Command{
		Use:   "suspend PROVIDER...",
		Short: "Suspend the reconciliation of providers",
		Long: `Suspend the reconciliation of providers: the operator installs, upgrades, corrects and removes
nothing until they are resumed. Their status is still updated, and they keep running.`,
		Args: cli.Arguments(1, -1, "at least one provider"),
		RunE: cli.Run(o.run),
	}
	o.cluster = cli.AddClusterFlags(cmd.Flags())
	o.wait = cli.AddWaitFlags(cmd.Flags(), "the operator has stopped reconciling the providers")

	return cmd
}

// NewResumeCommand returns `capstan resume`.
func NewResumeCommand(options *cli.Options) *cobra.Command {
	o := &suspendOptions{Options: options}
	cmd := &cobra.Command{
		Use:   "resume PROVIDER...",
		Short: "Resume the reconciliation of providers",
		Long:  "Resume the reconciliation of suspended providers.",
		Args:  cli.Arguments(1, -1, "at least one provider"),
		RunE:  cli.Run(o.run),
	}
	o.cluster = cli.AddClusterFlags(cmd.Flags())
	o.wait = cli.AddWaitFlags(cmd.Flags(), "the providers are ready")

	return cmd
}

func (o *suspendOptions) run(ctx context.Context, args []string) error {
	cluster, err := o.cluster.Connect()
	if err != nil {
		return err
	}

	found, err := cluster.FindAll(ctx, args)
	if err != nil {
		return err
	}

	message := "resumed"
	if o.suspend {
		message = "suspended"
	}

	for _, p := range found {
		if p.GetSpec().Suspend != o.suspend {
			change := map[string]any{"spec": map[string]any{"suspend": o.suspend}}
			if err := cluster.Patch(ctx, p, change); err != nil {
				return err
			}
		}

		o.Printf("%s: %s", v1alpha2.FullName(p), message)
	}

	// All are changed before the first is waited for.
	for _, p := range found {
		if !o.suspend {
			err = waitReady(ctx, o.Options, cluster, p, o.wait)
		} else if o.wait.Wait {
			err = cluster.Wait(ctx, p, o.wait.Timeout, cli.Observed, func(line string) { o.Printf("%s", line) })
		}

		if err != nil {
			return err
		}
	}

	return nil
}
