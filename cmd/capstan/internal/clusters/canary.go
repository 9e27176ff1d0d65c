package clusters

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/audit/canary"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// canaryOptions are the flags of `canary`.
type canaryOptions struct {
	*cli.Options

	cluster  *cli.ClusterFlags
	output   *cli.OutputFlags
	duration time.Duration
	in       string
}

// NewCanaryCommand returns `capstan canary`.
func NewCanaryCommand(options *cli.Options) *cobra.Command {
	o := &canaryOptions{Options: options}
	cmd := &cobra.Command{
		Use:   "canary [PROVIDER...]",
		Short: "Measure how long webhooks of providers do not answer, for example during an upgrade",
		Long: `Send a request to the webhooks of each provider every 200 ms, until Ctrl-C or for --duration, and print the
gaps in which they did not answer.

The request creates an object by dry run, so nothing is changed. It is the smallest object of one of the
provider's CRDs that most of its webhooks are asked about: mutating, validating and conversion webhooks. An
object that a webhook denies counts as answered. Without arguments all providers are measured. The user
must be allowed to create objects of all kinds of the providers in the namespace --in. The exit code is 2
if a request was not answered.`,
		Example: `  capstan canary
  capstan canary infrastructure-aws --duration 5m -o json`,
		Args:              cli.Arguments(0, -1, "any number of providers"),
		ValidArgsFunction: cli.CompleteProviders,
		RunE:              cli.Run(o.run),
	}
	flags := cmd.Flags()
	o.cluster = cli.AddClusterFlags(flags)
	o.output = cli.AddOutputFlags(flags)
	flags.DurationVar(&o.duration, "duration", 0, "How long to measure. Default: until Ctrl-C.")
	flags.StringVar(&o.in, "in", metav1.NamespaceDefault, "Namespace of the objects that are created by dry run.")

	return cmd
}

// measured is what was found out about a provider.
type measured struct {
	canary.Summary

	// Object is what was created by dry run; empty if no webhook answers any request.
	Object string `json:"object,omitempty"`
}

func (o *canaryOptions) run(ctx context.Context, args []string) error {
	if o.duration < 0 {
		return errors.New("--duration must not be negative")
	}

	printer, cluster, err := o.Connect(o.output, o.cluster)
	if err != nil {
		return err
	}

	found, err := o.providers(ctx, cluster, args)
	if err != nil {
		return err
	}

	results, err := o.measure(ctx, cluster, found)
	if err != nil {
		return err
	}

	if err := printer.Print(results, func() error { return printMeasured(printer, results) }); err != nil {
		return err
	}

	for _, r := range results {
		if r.Failed() > 0 {
			return &cli.ExitError{Code: cli.ExitFindings}
		}
	}

	return nil
}

// providers returns the providers that the arguments select.
func (o *canaryOptions) providers(
	ctx context.Context, cluster *cli.Cluster, args []string,
) ([]v1alpha2.Provider, error) {
	if len(args) > 0 {
		return cluster.FindAll(ctx, args)
	}

	all, err := cluster.Providers(ctx)
	if err == nil && len(all) == 0 {
		err = errors.New("there are no providers; create a provider resource, or select another cluster or --namespace")
	}

	return all, err
}

// measure sends requests until the context or the duration ends.
func (o *canaryOptions) measure(
	ctx context.Context, cluster *cli.Cluster, providers []v1alpha2.Provider,
) ([]measured, error) {
	var (
		results = make([]measured, len(providers))
		probes  = make([]*canary.Probe, len(providers))
		started = make([]*canary.Canary, len(providers))
	)

	for i, p := range providers {
		label := v1alpha2.Label(p)
		results[i].Canary = label

		probe, err := canary.NewProbe(ctx, cluster.Client, label, o.in)
		if err != nil {
			return nil, err
		}

		if probe != nil {
			probes[i], results[i].Object = probe, probe.String()
		}
	}

	measuring, stop := context.WithCancel(ctx)
	defer stop()

	until := "Ctrl-C"

	if o.duration > 0 {
		measuring, stop = context.WithTimeout(ctx, o.duration)
		defer stop()

		until = o.duration.String()
	}

	for i, probe := range probes {
		if probe != nil {
			started[i] = canary.Start(measuring, results[i].Canary, probe.Attempt)
		}
	}

	fmt.Fprintf(o.ErrOut, "Sending a request to each provider every %s, until %s ...\n", canary.Interval, until)
	<-measuring.Done()

	for i, c := range started {
		if c != nil {
			results[i].Summary = c.Summarize()
		}
	}

	return results, nil
}

func printMeasured(printer *cli.Printer, results []measured) error {
	rows := make([]cli.Row, 0, len(results))

	for _, r := range results {
		if r.Object == "" {
			rows = append(rows, cli.Row{Cells: []string{r.Canary, "no webhook answers a dry run"}})
			continue
		}

		style := cli.Plain
		if r.Failed() > 0 {
			style = cli.Red
		}

		_, reason := r.Longest()
		rows = append(rows, cli.Row{Style: style, Cells: []string{
			r.Canary, r.Object, fmt.Sprint(r.Attempts), fmt.Sprint(r.Failed()), r.Lengths(), strings.TrimSpace(reason),
		}})
	}

	header := []string{"PROVIDER", "CREATED BY DRY RUN", "REQUESTS", "REFUSED", "GAPS", "REASON OF THE LONGEST"}

	return printer.Table(header, rows)
}
