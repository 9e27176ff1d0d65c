package providers

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/controllers"
	"github.com/capstan-project/capstan/controllers/reconcile/decide"
)

// whyOptions are the flags of `why`.
type whyOptions struct {
	*cli.Options

	resource *cli.ResourceFlags
	output   *cli.OutputFlags

	set    []string
	inputs bool
}

// NewWhyCommand returns `capstan why`.
func NewWhyCommand(options *cli.Options) *cobra.Command {
	o := &whyOptions{Options: options}
	cmd := &cobra.Command{
		Use:   "why {PROVIDER | --filename FILE}",
		Short: "Explain what the operator decides about a provider",
		Long: `Explain what the operator decides about a provider: the rows of its rules, the outcome of each of them, the
row that explains what is reported, what that depends on, and who or what ends a wait. An input is evidence if only
the operator and its own API server can have written it, or else a claim.

The command runs the operator's own reconcile with your permissions, and changes nothing: what would be written is
tried as a dry run, and what is read afterwards shows it as if it had been written. What you must not read is
not known, and is listed.

With --set, --version or --filename, show what would be decided and reported if the resource were changed, through
as many reconciles as that takes. What is applied is assumed to become healthy.

The result depends on the operator's configuration, which it publishes; flags override it. Values
of variables and Secrets are not shown.`,
		Example: `  capstan why infrastructure-aws
  capstan why infrastructure-aws --inputs
  capstan why infrastructure-aws --set spec.version=v2.11.1
  capstan why -f aws.yaml -o json`,
		ValidArgsFunction: cli.CompleteProvider,
		RunE:              cli.Run(o.run),
	}

	flags := cmd.Flags()
	o.resource = cli.AddResourceFlags(cmd)
	o.output = cli.AddOutputFlags(flags)
	flags.StringArrayVar(&o.set, "set", nil,
		"Field of the resource to change, as PATH=VALUE, such as spec.version=v2.11.1. It can be repeated.")
	flags.BoolVar(&o.inputs, "inputs", false, "Show what each row depends on, and not only the decisive one.")

	return cmd
}

func (o *whyOptions) run(ctx context.Context, args []string) error {
	printer, cluster, p, err := o.resource.Open(ctx, o.Options, o.output, args)
	if err != nil {
		return err
	}

	if p, err = cli.SetFields(p, o.set); err != nil {
		return err
	}

	planner, err := o.resource.Planner.Planner(ctx, o.Options, cluster)
	if err != nil {
		return err
	}
	defer planner.Close()

	if !planner.Concerns(p) {
		o.Warnf("the operator does not reconcile %s: --watch-namespaces or --watch-label-selector leaves it out; "+
			"this is what it would decide if it did", v1alpha2.FullName(p))
	}

	cli.SilenceLibraries() // they log errors of requests that the command no longer waits for

	run, err := planner.DryRun(ctx)
	if err != nil {
		return err
	}

	changed := o.resource.IsChanged() || len(o.set) > 0

	found, err := explain(ctx, run, p, changed)
	if err != nil {
		return err
	}

	return printer.Print(found, func() error {
		o.print(printer, found)
		return nil
	})
}

// explanation is the output of the command.
type explanation struct {
	Provider  string `json:"provider"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Reported is the condition Ready that the operator has written; nil for none. Outdated is set if it is about an
	// earlier generation of the resource.
	Reported *metav1.Condition `json:"reported,omitempty"`
	Outdated bool              `json:"outdated,omitempty"`
	// Forecast is set if the resource is not as it is in the cluster.
	Forecast bool `json:"forecast,omitempty"`
	// Passes are the reconciles, in their order.
	Passes []pass `json:"passes"`
}

// pass is a reconcile, and what it reports.
type pass struct {
	controllers.Pass `json:",inline"`

	Ready *metav1.Condition `json:"ready,omitempty"`
}

// explain runs the reconciles of a provider: one, or for a changed one as many as it takes.
func explain(ctx context.Context, run *controllers.DryRun, p v1alpha2.Provider, changed bool) (*explanation, error) {
	found := &explanation{
		Provider: v1alpha2.Label(p), Namespace: p.GetNamespace(), Name: p.GetName(), Forecast: changed,
		Reported: conditions.Get(p, v1alpha2.ReadyCondition),
		Outdated: p.GetStatus().ObservedGeneration != p.GetGeneration(),
	}

	reconcile := func(ctx context.Context, p v1alpha2.Provider) ([]controllers.Pass, error) {
		one, err := run.Reconcile(ctx, p)
		return []controllers.Pass{one}, err
	}
	if changed {
		reconcile = run.Forecast
	}

	passes, err := reconcile(ctx, p)
	if err != nil {
		return nil, err
	}

	for _, made := range passes {
		found.Passes = append(found.Passes, pass{made, made.Ready()})
	}

	return found, nil
}

func (o *whyOptions) print(printer *cli.Printer, found *explanation) {
	printer.Printf("%s", printer.Paint(cli.Bold, fmt.Sprintf("%s in namespace %s", found.Provider, found.Namespace)))

	last := found.Passes[len(found.Passes)-1]

	if !found.Forecast {
		printReported(printer, found, last)
	}

	for i, made := range found.Passes {
		if len(found.Passes) > 1 {
			printer.Printf("")
			printer.Printf("%s", printer.Paint(cli.Bold, fmt.Sprintf("Reconcile %d", i+1)))
		}

		o.printPass(printer, made, i == len(found.Passes)-1)
	}
}

// printReported prints what the operator has reported, if that is not what it would report now.
func printReported(printer *cli.Printer, found *explanation, last pass) {
	before, now := found.Reported, last.Ready

	switch {
	case before == nil:
		printer.Printf("The operator has not reported anything yet; if that lasts, check that it runs.")
		return
	case found.Outdated:
		printer.Printf("The operator has not seen the last change of the resource yet; if that lasts, check that it runs.")
	}

	if now == nil || before.Status != now.Status || before.Reason != now.Reason || before.Message != now.Message {
		printer.Printf("%s", printer.Paint(readyStyle(before), "The operator has reported: "+describeReady(before)))
	}
}

func describeReady(ready *metav1.Condition) string {
	return fmt.Sprintf("Ready is %s (%s): %s", ready.Status, ready.Reason, ready.Message)
}

func readyStyle(ready *metav1.Condition) cli.Style {
	if ready.Status == metav1.ConditionTrue {
		return cli.Green
	}

	return cli.Yellow
}

// printPass prints a reconcile. The rows of the last one are printed completely.
func (o *whyOptions) printPass(printer *cli.Printer, made pass, full bool) {
	switch {
	case made.Gone:
		printer.Printf("%s", printer.Paint(cli.Green, "The resource is let go."))
	case made.Ready != nil:
		printer.Printf("%s", printer.Paint(readyStyle(made.Ready), describeReady(made.Ready)))
	}

	row, text := decide.Decisive(made.Lists)
	printer.Tree(decisiveTree(text, row))

	for _, u := range made.Unknown {
		printer.Printf("%s", printer.Paint(cli.Yellow, u.String()))
	}

	if made.After > 0 {
		printer.Printf("The operator looks again in %s.", made.After.Round(time.Second))
	}

	if len(made.Writes) > 0 {
		node := cli.Node{Text: fmt.Sprintf("%s that would be sent", cli.Count(len(made.Writes), "request"))}
		for _, w := range made.Writes {
			node.Add(cli.Plain, w.Verb+" "+w.Object)
		}

		printer.Tree(node)
	}

	if full || o.inputs {
		for _, list := range made.Lists {
			printer.Printf("")
			printer.Tree(o.listTree(list))
		}
	}
}

// decisiveTree returns a text about a row with what that depends on; the row may be nil.
func decisiveTree(text string, row *decide.Row) cli.Node {
	tree := cli.Node{Text: text}
	if row == nil {
		return tree
	}

	addInputs(&tree, row)

	if !row.Until.IsZero() {
		tree.Add(cli.Plain, "decides again at "+row.Until.UTC().Format(time.RFC3339))
	}

	if row.Ends != "" {
		tree.Add(cli.Bold, "who ends it: "+row.Ends)
	}

	return tree
}

func addInputs(tree *cli.Node, row *decide.Row) {
	for _, input := range row.Inputs {
		tree.Add(cli.Plain, fmt.Sprintf("%s: %s (%s: %s)", input.Name, input.Value, input.Trust, input.From))
	}
}

// listTree returns the rows of a list. Those after the decisive one are not listed one by one.
func (o *whyOptions) listTree(list decide.List) cli.Node {
	tree := cli.Node{Text: "Rows of " + list.Name, Style: cli.Bold}
	rows, left := list.Reached()

	for i := range rows {
		row := &rows[i]

		node := cli.Node{Text: describeRow(row), Style: rowStyle(row)}
		if o.inputs {
			addInputs(&node, row)
		}

		tree.Children = append(tree.Children, node)
	}

	if left > 0 {
		tree.Add(cli.Plain, cli.Count(left, "row")+" not reached")
	}

	return tree
}

func describeRow(row *decide.Row) string {
	switch row.Verdict {
	case decide.Passed:
		return fmt.Sprintf("passed: %s (%s)", row.Name, row.Action)
	case decide.Decided:
		text := "decided: " + row.Name
		if row.Result != "" {
			text += " → " + row.Result
		}

		return text
	default:
		return "not needed: " + row.Name
	}
}

func rowStyle(row *decide.Row) cli.Style {
	switch {
	case row.Decisive:
		return cli.Yellow
	case row.Verdict == decide.Passed:
		return cli.Green
	}

	return cli.Plain
}
