// Package providers has the commands for the providers of a management cluster, and for those that
// can be installed.
package providers

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
)

const (
	// watchInterval is the time between two reads of `status --watch`.
	watchInterval = 2 * time.Second
	// clearScreen moves the cursor to the top of an empty terminal.
	clearScreen = "\x1b[H\x1b[2J"
)

// statusOptions are the flags of `status`.
type statusOptions struct {
	*cli.Options

	cluster       *cli.ClusterFlags
	output        *cli.OutputFlags
	allNamespaces bool // the default; kubectl's users expect the flag
	watch         bool
}

// NewStatusCommand returns `capstan status`.
func NewStatusCommand(options *cli.Options) *cobra.Command {
	o := &statusOptions{Options: options}
	cmd := &cobra.Command{
		Use:   "status [PROVIDER]",
		Short: "Show providers, their releases and the health of their objects",
		Long: `Show providers, their releases and the current health of their objects.

PROVIDER is a label (infrastructure-aws), a kind and name (infrastructureprovider/aws), or a name
that only one provider has. With it, the conditions, objects, source, images, CRDs and events of the
provider are shown, and the names of its variables. Without it all providers are shown, with what they
depend on, but only those of their objects and conditions that need attention.`,
		Example: `  capstan status
  capstan status infrastructure-aws --watch`,
		Args:              cli.Arguments(0, 1, "at most one provider"),
		ValidArgsFunction: cli.CompleteProvider,
		RunE:              cli.Run(o.run),
	}
	flags := cmd.Flags()
	o.cluster = cli.AddClusterFlags(flags)
	o.output = cli.AddOutputFlags(flags)
	flags.BoolVarP(
		&o.allNamespaces,
		"all-namespaces",
		"A",
		false,
		"Show the providers in all namespaces. This is the default.",
	)
	flags.BoolVarP(&o.watch, "watch", "w", false, "Show the status again whenever it changes.")
	cmd.MarkFlagsMutuallyExclusive("all-namespaces", "namespace")

	return cmd
}

func (o *statusOptions) run(ctx context.Context, args []string) error {
	printer, cluster, err := o.Connect(o.output, o.cluster)
	if err != nil {
		return err
	}

	views, err := readViews(ctx, cluster, args)
	if err != nil {
		return err
	}

	if err := printStatus(printer, views, len(args) == 1); err != nil || !o.watch {
		return err
	}

	return o.follow(ctx, printer, cluster, args, views)
}

// follow prints the status whenever it changes, until the user interrupts it.
func (o *statusOptions) follow(
	ctx context.Context,
	printer *cli.Printer,
	cluster *cli.Cluster,
	args []string,
	printed []view.Provider,
) error {
	retries := o.Retries()

	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchInterval):
		}

		views, err := readViews(ctx, cluster, args)

		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the user has interrupted the command
		case err != nil && retries(err):
			continue
		case err != nil:
			return err
		}

		retries = o.Retries() // the next failure is another one

		if equality.Semantic.DeepEqual(printed, views) {
			continue
		}

		printed = views

		separate(printer)

		if err := printStatus(printer, views, len(args) == 1); err != nil {
			return err
		}
	}
}

// separate makes room for the next status: it clears a terminal, and prints an empty line elsewhere.
func separate(printer *cli.Printer) {
	switch {
	case printer.Format != cli.FormatTable:
	case printer.Color:
		fmt.Fprint(printer, clearScreen)
	default:
		fmt.Fprintln(printer)
	}
}

// readViews reads the status of the provider that an argument names, or of all.
func readViews(ctx context.Context, cluster *cli.Cluster, args []string) ([]view.Provider, error) {
	var (
		found []v1alpha2.Provider
		err   error
	)

	if len(args) == 1 {
		found, err = cluster.FindAll(ctx, args)
	} else {
		found, err = cluster.Providers(ctx)
	}

	if err != nil {
		return nil, err
	}

	read := cluster.Views().Provider
	if len(args) == 1 {
		read = cluster.Views().Detailed
	}

	views := make([]view.Provider, len(found))

	group, ctx := errgroup.WithContext(ctx)
	for i, p := range found {
		group.Go(func() (err error) {
			views[i], err = read(ctx, p)
			return err
		})
	}

	return views, group.Wait()
}

// printStatus prints providers as data or as trees. Healthy objects are only part of the trees if
// full is set.
func printStatus(printer *cli.Printer, views []view.Provider, full bool) error {
	return printer.Print(views, func() error {
		if len(views) == 0 {
			printer.Printf("There are no providers.")
		}

		for _, v := range views {
			printer.Tree(tree(v, full))
		}

		return nil
	})
}
