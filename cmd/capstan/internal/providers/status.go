// Package providers has the commands for the providers of a management cluster.
package providers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"

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
	wait          *cli.WaitFlags
	selector      string
	allNamespaces bool // the default; kubectl's users expect the flag
	watch         bool
	exitCode      bool
	// warned is set once a warning was printed, which --watch does not repeat.
	warned bool
}

// NewStatusCommand returns `capstan status`.
func NewStatusCommand(options *cli.Options) *cobra.Command {
	o := &statusOptions{Options: options}
	cmd := &cobra.Command{
		Use:   "status [PROVIDER...]",
		Short: "Show what runs, what is wanted, and why they differ",
		Long: `There is a line for each provider. Those that fail come first, then those that
wait.

With PROVIDER, its release is shown as a tree, with all that is known of it.
What is in order is only counted. --output tree shows all providers like that.

PROVIDER is the name of the release (infrastructure-aws), a kind and name
(infrastructureprovider/aws), or a name that only one provider has.`,
		Example: `  capstan status
  capstan status infrastructure-aws
  capstan status infrastructure-aws --wait --timeout 5m
  capstan status --output tree --watch`,
		ValidArgsFunction: cli.CompleteProviders,
		RunE:              cli.Run(o.run),
	}
	flags := cmd.Flags()
	o.cluster = cli.AddClusterFlags(flags)
	o.output = cli.AddOutputFlags(flags, cli.FormatTree, cli.FormatWide, cli.FormatName)
	o.wait = cli.AddWaitFlags(flags, "the providers are ready, and then show them")
	o.wait.Wait, flags.Lookup("wait").DefValue = false, "false"
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Show all namespaces, which is the default.")
	flags.BoolVarP(&o.watch, "watch", "w", false, "Show the status again whenever it changes.")
	flags.StringVarP(&o.selector, "selector", "l", "", "Only show providers whose resources have these labels.")
	flags.BoolVar(&o.exitCode, "exit-code", false, "Exit with code 2 if not all providers are ready.")
	cmd.MarkFlagsMutuallyExclusive("all-namespaces", "namespace")
	cmd.MarkFlagsMutuallyExclusive("exit-code", "watch")

	return cmd
}

func (o *statusOptions) run(ctx context.Context, args []string) error {
	printer, cluster, err := o.Connect(o.output, o.cluster)
	if err != nil {
		return err
	}

	if len(args) > 0 && !o.output.Given() {
		printer.Format = cli.FormatTree
	}

	if o.wait.Wait {
		found, err := o.selected(ctx, cluster, args)
		if err == nil {
			err = cluster.WaitAll(ctx, o.Options, found, o.wait, cli.Ready)
		}

		if err != nil {
			return err
		}
	}

	brief := slices.Contains([]string{cli.FormatTable, cli.FormatWide, cli.FormatName}, printer.Format)
	read := func(ctx context.Context) ([]view.Provider, error) { return o.readViews(ctx, cluster, args, brief) }

	views, err := read(ctx)
	if err != nil {
		return err
	}

	if len(views) == 0 && brief {
		o.sayNone(ctx, cluster)
	} else if err := printStatus(printer, views); err != nil {
		return err
	}

	if stopped := cluster.StoppedOperator(ctx); stopped != "" {
		o.Warnf("%s", stopped)
	}

	notReady := slices.ContainsFunc(views, func(v view.Provider) bool { return v.Ready != string(metav1.ConditionTrue) })

	switch {
	case o.exitCode && notReady:
		return &cli.ExitError{Code: cli.ExitFindings}
	case !o.watch:
		return nil
	}

	return o.follow(ctx, printer, read, views)
}

// sayNone says that there is nothing to show.
func (o *statusOptions) sayNone(ctx context.Context, cluster *cli.Cluster) {
	if o.selector != "" {
		o.Printf("No provider has the labels %s.", o.selector)
		return
	}

	o.Printf("%s", cluster.None(ctx))
}

// follow prints the status whenever it changes, until the user interrupts it.
func (o *statusOptions) follow(
	ctx context.Context,
	printer *cli.Printer,
	read func(context.Context) ([]view.Provider, error),
	printed []view.Provider,
) error {
	retries := o.Retries()

	err := wait.PollUntilContextCancel(ctx, watchInterval, false, func(ctx context.Context) (bool, error) {
		views, err := read(ctx)

		switch {
		case err != nil && (ctx.Err() != nil || retries(err)):
			return false, nil //nolint:nilerr // it is tried again
		case err != nil:
			return false, err
		}

		retries = o.Retries() // the next failure is another one

		if equality.Semantic.DeepEqual(printed, views) {
			return false, nil
		}

		printed = views

		separate(printer)

		return false, printStatus(printer, views)
	})
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the user has interrupted the command
	}

	return err
}

// separate makes room for the next status: it clears a terminal, and prints an empty line elsewhere.
func separate(printer *cli.Printer) {
	switch {
	case printer.Format == cli.FormatJSON || printer.Format == cli.FormatYAML:
	case printer.Color:
		fmt.Fprint(printer, clearScreen)
	default:
		fmt.Fprintln(printer)
	}
}

// readViews reads the status of the providers that the arguments name, or of all, the most urgent first. In brief, it
// is only what their resources say.
func (o *statusOptions) readViews(
	ctx context.Context, cluster *cli.Cluster, args []string, brief bool,
) ([]view.Provider, error) {
	found, err := o.selected(ctx, cluster, args)
	if err != nil {
		return nil, err
	}

	read := cluster.Views().Provider

	switch {
	case brief:
		//nolint:unparam // the others read
		read = func(_ context.Context, p v1alpha2.Provider) (view.Provider, error) { return view.NewProvider(p), nil }
	case len(args) > 0:
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

	err = group.Wait()

	slices.SortStableFunc(views, view.CompareStates)

	return views, err
}

// selected returns the providers that the arguments and --selector name, or all.
func (o *statusOptions) selected(
	ctx context.Context, cluster *cli.Cluster, args []string,
) ([]v1alpha2.Provider, error) {
	selector, err := labels.Parse(o.selector)
	if err != nil {
		return nil, fmt.Errorf("--selector: %w", err)
	}

	var found []v1alpha2.Provider

	if len(args) > 0 {
		found, err = cluster.FindAll(ctx, args)
	} else {
		var warning string

		found, warning, err = cluster.Visible(ctx)
		if warning != "" && !o.warned {
			o.Warnf("%s", warning)
			o.warned = true
		}
	}

	return slices.DeleteFunc(found, func(p v1alpha2.Provider) bool {
		return !selector.Matches(labels.Set(p.GetLabels()))
	}), err
}

// printStatus prints providers as data, as trees or as a table.
func printStatus(printer *cli.Printer, views []view.Provider) error {
	return printer.Print(views, func() error {
		switch printer.Format {
		case cli.FormatTable, cli.FormatWide:
			return printer.Table(statusTable(views, printer, time.Now()))
		case cli.FormatTree:
			for _, v := range views {
				printer.Tree(tree(v))
			}
		default:
			for _, v := range views {
				printer.Printf("%s", v.Label)
			}
		}

		return nil
	})
}

// narrow is the width of a terminal on which the message needs the place of other columns.
const narrow = 100

// statusTable returns the header and the rows of a table with one row for each provider.
func statusTable(views []view.Provider, printer *cli.Printer, now time.Time) ([]string, []cli.Row) {
	count := map[string]int{}
	for _, v := range views {
		count[v.Label]++
	}

	columns := func(all ...string) []string {
		switch {
		case printer.Format == cli.FormatWide:
			return all
		case printer.Width > 0 && printer.Width < narrow:
			return []string{all[0], all[4], all[5], all[9]}
		}

		return slices.Delete(all, 1, 4)
	}
	rows := make([]cli.Row, 0, len(views))

	for _, v := range views {
		name := v.Label
		if count[name] > 1 && printer.Format != cli.FormatWide { // in several clusters, or by mistake
			name += " (" + v.Namespace + ")"
		}

		revision := ""
		if v.Release != nil && v.Release.Revision != 0 && v.Release.Status != v1alpha2.RevisionUninstalled {
			revision = strconv.Itoa(v.Release.Revision)
		}

		cells := columns(name, v.Namespace, cmp.Or(v.Contract, "-"), v.Newest(), cmp.Or(v.Version, "-"),
			cmp.Or(v.Chosen, v.Wanted, "-"), cmp.Or(revision, "-"), v.Ready, age(v.Created.Time, now), v.Verdict.String())

		rows = append(rows, cli.Row{Style: style(v), Cells: cells})
	}

	return columns("NAME", "NAMESPACE", "CONTRACT", "AVAILABLE", "VERSION", "WANTED", "REVISION", "READY", "AGE",
		"MESSAGE"), rows
}
