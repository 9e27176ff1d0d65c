// Package setup turns a Kubernetes cluster into a management cluster of Capstan: with new providers, or with those of
// clusterctl.
package setup

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/mirror/certmanager"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// options are the flags of `init`.
type options struct {
	*cli.Options

	cluster *cli.ClusterFlags
	planner *cli.PlannerFlags
	wait    *cli.WaitFlags

	selected          selection
	variables         string
	certManager       string
	certManagerValues string
	operatorValues    string
	output            *cli.OutputFlags
	dryRun            bool
}

// NewCommand returns `capstan init`. The program installs an operator of its own version.
func NewCommand(o *cli.Options) *cobra.Command {
	opts := &options{Options: o, selected: selection{}}
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Turn a cluster into a management cluster",
		Long: `Install cert-manager, the operator and providers, and wait until they are ready.
As with clusterctl, a cluster without a core provider also gets core and the
kubeadm providers, unless you name others.

The command first checks the version of the API server, your permissions, the
sources and the variables; with --dry-run, that is all it does.

Variables of providers come from --variables, the environment and the
configuration file, in this order of precedence, and are written to Secrets.

What the cluster has already is left as it is, so you can run the command again
after an error, or to add providers. In Secrets that the command has created, it
changes only the variables that you give another value.

With --chart-repository and --image-registry, everything comes from a mirror,
see "capstan mirror --help". With --output yaml or json, resources and Secrets
are only printed.`,
		Example: `  capstan init --infrastructure aws
  capstan init --infrastructure aws:v2.11.1 --variables variables.yaml
  capstan init --infrastructure aws --dry-run
  capstan init --infrastructure aws --output yaml > providers.yaml
  capstan init --infrastructure aws \
    --chart-repository oci://registry.example.com/capi/charts \
    --image-registry registry.example.com/capi`,
		Args: cli.Arguments(0, 0, "no arguments; name providers with flags such as --infrastructure"),
	}

	flags := cmd.Flags()
	opts.cluster = cli.AddClusterFlags(flags)
	opts.planner = cli.AddPlannerFlags(flags)
	opts.wait = cli.AddWaitFlags(flags, "the providers are ready")
	opts.selected.addFlags(flags)

	flags.StringVar(&opts.variables, "variables", "", "File with variables of the providers, as NAME: value.")
	flags.StringVar(&opts.certManager, "cert-manager", certmanager.Version,
		"Version of cert-manager to install if its API is missing; or its chart, as oci://REGISTRY/PATH:VERSION or a "+
			".tgz file; or none.")
	flags.StringVar(&opts.certManagerValues, "cert-manager-values", "", "File with values for cert-manager's chart.")
	flags.StringVar(&opts.operatorValues, "operator-values", "", "File with values for the operator's chart.")
	flags.BoolVar(&opts.dryRun, "dry-run", false, "Only show what would be done.")
	flags.Lookup("namespace").Hidden = true // providers are in namespaces of their own
	opts.output = cli.AddOutputFlags(flags)

	for _, t := range v1alpha2.ProviderTypes() {
		_ = cmd.RegisterFlagCompletionFunc(cli.TypeName(t), cli.CompleteKnown(t)) // fails only for flags that do not exist
	}

	cmd.RunE = cli.Run(opts.run)

	return cmd
}

func (o *options) run(ctx context.Context, _ []string) error {
	printer, cluster, err := o.Connect(o.output, o.cluster)
	if err != nil {
		return err
	}

	plan, err := o.plan(ctx, cluster)
	if err != nil {
		return err
	}

	isTable := printer.Format == cli.FormatTable
	if isTable {
		plan.print(printer)

		if err := o.check(ctx, cluster, plan); err != nil {
			return err
		}
	}

	err = incomplete(plan.providers, "set them in the environment, in the configuration file, or in the file of "+
		"--variables")

	switch {
	case !isTable && err != nil: // the Secret can come from elsewhere
		o.Warnf("%s", err)
		fallthrough
	case !isTable:
		return printer.Manifests(slices.Concat(cli.Map(plan.providers, (*provider).objects)...), "values of variables")
	case err != nil:
		return err
	}

	if o.dryRun {
		return nil
	}

	start := time.Now()

	if err := o.carryOut(ctx, cluster, plan); err != nil {
		if ctx.Err() != nil {
			return errors.New("interrupted; run the same command again to continue")
		}

		return err
	}

	o.Printf("Done after %s", time.Since(start).Round(100*time.Millisecond))

	return nil
}
