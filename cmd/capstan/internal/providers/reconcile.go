package providers

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// NewReconcileCommand returns `capstan reconcile`.
func NewReconcileCommand(o *cli.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reconcile {PROVIDER... | --all}",
		Short: "Apply again what providers ask for",
		Long: `What has failed is tried again, changes that are pending are applied, and
changes that another program has made to releases are undone.`,
		Example: `  capstan reconcile infrastructure-aws
  capstan reconcile --all`,
		ValidArgsFunction: cli.CompleteProviders,
	}
	flags := cli.AddClusterFlags(cmd.Flags())
	wait := cli.AddWaitFlags(cmd.Flags(), "the providers are ready")
	selection := cli.AddSelectionFlags(cmd)

	cmd.RunE = cli.Run(func(ctx context.Context, args []string) error {
		cluster, found, err := selection.Find(ctx, o, flags, args)
		if err != nil {
			return err
		}

		var requested []v1alpha2.Provider

		for _, p := range found {
			switch {
			case !p.GetSpec().Suspend:
				requested = append(requested, p)
			case selection.All:
				o.Printf("%s: left out, because it is suspended", v1alpha2.FullName(p))
			default:
				return fmt.Errorf("nothing was changed: %s is suspended; run `capstan resume %s` first",
					v1alpha2.FullName(p), v1alpha2.Label(p))
			}
		}

		for _, p := range requested {
			if err := cluster.Patch(ctx, p, map[string]any{"metadata": cli.TryAgain()}); err != nil {
				return err
			}

			o.Printf("%s: reconcile requested", v1alpha2.FullName(p))
		}

		return cluster.WaitAll(ctx, o, requested, wait, cli.Ready)
	})

	return cmd
}
