package clusters

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/cmd/capstan/internal/charts"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/controllers/crds/safety"
)

// checkOptions are the flags of `crds check`.
type checkOptions struct {
	*cli.Options

	cluster  *cli.ClusterFlags
	output   *cli.OutputFlags
	identity *charts.Identity
	baseline string
	allow    []string
}

func newCRDsCheckCommand(options *cli.Options) *cobra.Command {
	o := &checkOptions{Options: options}
	cmd := &cobra.Command{
		Use:   "check {DIR[/VERSION] | CHART.tgz | FILE.yaml}",
		Short: "Show what a provider's CRDs would break in the cluster",
		Long: `Compare the CRDs that a provider publishes with those in the cluster, and validate the existing
objects against them, as the operator does before it applies CRDs, with the patches of the provider's
resource. Nothing is changed.

The CRDs come from a provider's folder in clusterctl's local-repository layout, a chart, or a file of
components. With --baseline they are compared with those of another one, and no cluster
is accessed; changes that depend on objects are then judged by rules alone.

The exit code is 1 if there is an error: a change that breaks an object, or could break one and
cannot be checked.`,
		Example: `  capstan crds check providers/infrastructure-aws/v2.11.1
  capstan crds check infrastructure-aws-2.11.1.tgz --baseline infrastructure-aws-2.10.3.tgz --output yaml`,
		Args: cli.Arguments(1, 1, "a provider's folder, a chart or a file of components"),
		RunE: cli.Run(o.run),
	}
	flags := cmd.Flags()
	o.cluster = cli.AddClusterFlags(flags)
	o.output = cli.AddOutputFlags(flags)
	o.identity = charts.AddIdentityFlags(flags)
	flags.StringVar(
		&o.baseline,
		"baseline",
		"",
		"Folder, chart or file with the CRDs to compare with, instead of those in the cluster.",
	)
	flags.StringSliceVar(&o.allow, "allow", nil, "Names of CRDs whose errors are only warnings.")

	return cmd
}

func (o *checkOptions) run(ctx context.Context, args []string) error {
	printer, err := o.output.Printer(o.Out)
	if err != nil {
		return err
	}

	desired, err := readCRDs(ctx, args[0], o.identity)
	if err != nil {
		return err
	}

	in := safety.Input{Allow: o.allow}
	if o.baseline != "" {
		in.Changes, err = o.changes(ctx, desired)
	} else {
		err = o.addCluster(ctx, &in, desired)
	}

	if err != nil {
		return err
	}

	report, err := safety.Check(ctx, in)
	if err != nil {
		return err
	}

	if err := printReport(printer, report); err != nil {
		return err
	}

	if report.HasErrors() {
		return fmt.Errorf("%s is not safe to apply: %s", args[0], cli.Count(report.Count(safety.Error), "error"))
	}

	return nil
}

// addCluster adds the changes from the cluster's CRDs to the desired ones, and the cluster's objects.
func (o *checkOptions) addCluster(
	ctx context.Context,
	in *safety.Input,
	desired []*apiextensionsv1.CustomResourceDefinition,
) error {
	cluster, err := o.cluster.Connect()
	if err != nil {
		return fmt.Errorf("%w, or compare with other CRDs with --baseline", err)
	}

	objects, err := dynamic.NewForConfig(cluster.Config)
	if err != nil {
		return err
	}

	in.Objects = safety.ClusterObjects{Client: objects}

	for _, d := range desired {
		live := &apiextensionsv1.CustomResourceDefinition{}

		err := cluster.Client.Get(ctx, client.ObjectKey{Name: d.Name}, live)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read CustomResourceDefinition %s: %w", d.Name, err)
		}

		if err != nil {
			live = nil
		} else if d, err = patchAsInstalled(ctx, cluster.Client, live, d); err != nil {
			return err
		}

		in.Changes = append(in.Changes, safety.Change{Live: live, Desired: d})
	}

	return nil
}

// printReport prints the findings, the objects that were validated and the numbers of findings.
func printReport(printer *cli.Printer, report *safety.Report) error {
	return printer.Print(report, func() error {
		rows := make([]cli.Row, 0, len(report.Findings))

		for _, f := range report.Findings {
			row := cli.Row{Cells: []string{string(f.Level), f.CRD, f.Version, f.Path, f.Text()}}

			switch f.Level {
			case safety.Error:
				row.Style = cli.Red
			case safety.Warning:
				row.Style = cli.Yellow
			}

			rows = append(rows, row)
		}

		if len(rows) > 0 {
			if err := printer.Table([]string{"LEVEL", "CRD", "VERSION", "FIELD", "FINDING"}, rows); err != nil {
				return err
			}
		}

		for _, l := range report.Trials {
			printer.Printf("%s", l)
		}

		printer.Printf(
			"%s, %s, %s",
			cli.Count(report.Count(safety.Error), "error"),
			cli.Count(report.Count(safety.Warning), "warning"),
			cli.Count(report.Count(safety.Info), "note"),
		)

		return nil
	})
}
