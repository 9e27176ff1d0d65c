package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// SelectionFlags select the providers that a command changes.
type SelectionFlags struct{ All bool }

// AddSelectionFlags adds --all to a command, which takes either that flag or the providers as arguments.
func AddSelectionFlags(cmd *cobra.Command) *SelectionFlags {
	f := &SelectionFlags{}
	cmd.Flags().BoolVar(&f.All, "all", false, "All providers, or all in --namespace.")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if f.All == (len(args) > 0) {
			return UsageError(cmd, "either providers or --all")
		}

		return nil
	}

	return f
}

// Find connects to the cluster, and returns the providers that the arguments or --all select, each once, in the order
// of installation. There may be none with --all, which it prints.
func (f *SelectionFlags) Find(
	ctx context.Context, o *Options, flags *ClusterFlags, args []string,
) (*Cluster, []v1alpha2.Provider, error) {
	c, err := flags.Connect()
	if err != nil {
		return nil, nil, err
	}

	found, err := c.FindAll(ctx, args)
	if err == nil && len(found) == 0 {
		o.Printf("%s", c.None(ctx))
	}

	return c, found, err
}
