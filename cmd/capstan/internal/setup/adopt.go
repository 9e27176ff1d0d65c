package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/catalog"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/controllers/fetch"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/plan"
)

// adoptOptions are the flags of `adopt`.
type adoptOptions struct {
	*cli.Options

	cluster *cli.ClusterFlags
	planner *cli.PlannerFlags
	wait    *cli.WaitFlags
	output  *cli.OutputFlags

	dryRun, yes bool
}

// NewAdoptCommand returns `capstan adopt`.
func NewAdoptCommand(o *cli.Options) *cobra.Command {
	opts := &adoptOptions{Options: o}
	cmd := &cobra.Command{
		Use:   "adopt [PROVIDER...]",
		Short: "Take over the providers that clusterctl has installed",
		Long: `Without arguments, all providers in clusterctl's inventory are taken over. Their
objects stay, and their pods keep running.

The command shows what changes, creates a resource with the installed version
for each provider, and waits until it is ready. If a pod template or a Secret
would change, it does nothing unless you set --yes.

The variables that a provider was installed with come from the environment and
clusterctl's configuration file, and are written to a Secret. The others have
their defaults.

With --output yaml or json, the command only prints the resources and Secrets,
with the values of variables.`,
		Example: `  capstan adopt --dry-run
  capstan adopt
  capstan adopt cluster-api infrastructure-aws
  capstan adopt --output yaml > providers.yaml`,
		RunE: cli.Run(opts.run),
	}

	flags := cmd.Flags()
	opts.cluster = cli.AddClusterFlags(flags)
	opts.planner = cli.AddPlannerFlags(flags)
	opts.wait = cli.AddWaitFlags(flags, "the providers are ready")
	opts.output = cli.AddOutputFlags(flags)
	flags.BoolVar(&opts.dryRun, "dry-run", false, "Only show what would be done.")
	flags.BoolVar(&opts.yes, "yes", false, "Adopt the providers even if pod templates or Secrets change.")

	return cmd
}

func (o *adoptOptions) run(ctx context.Context, args []string) error {
	printer, cluster, err := o.Connect(o.output, o.cluster)
	if err != nil {
		return err
	}

	found, err := readInventory(ctx, cluster)
	if err != nil {
		return err
	}

	installed, err := found.selected(args)
	if err != nil {
		return err
	}

	if len(installed) == 0 && printer.Format == cli.FormatTable {
		printer.Printf("Nothing to adopt: Capstan manages what is in clusterctl's inventory")
		return nil
	}

	adoptions, err := o.propose(ctx, cluster, installed)
	if err != nil {
		return err
	}

	if printer.Format != cli.FormatTable {
		return printer.Manifests(slices.Concat(cli.Map(adoptions, (*adoption).manifests)...), "values of variables")
	}

	printer.Printf("%s installed by clusterctl", object.Count(len(adoptions), "provider"))

	for _, a := range adoptions {
		a.print(printer)
	}

	providers := cli.Map(adoptions, func(a *adoption) *provider { return &a.provider })

	err = incomplete(providers, "set them in the environment or in clusterctl's configuration file, as they were when "+
		"the provider was installed")
	if err != nil || o.dryRun {
		return err
	}

	if err := disruption(adoptions); err != nil && !o.yes {
		return err
	}

	return o.adopt(ctx, cluster, adoptions)
}

// adoption is how an installed provider would be adopted.
type adoption struct {
	provider
	difference

	warnings []string
}

// propose returns how installed providers would be adopted. It changes nothing.
func (o *adoptOptions) propose(
	ctx context.Context, cluster *cli.Cluster, installed []v1alpha2.Provider,
) ([]*adoption, error) {
	existing, err := cluster.AllProviders(ctx)
	if err != nil {
		return nil, err
	}

	sources, err := newVariableSources("", o.planner.Config.Options.ConfigFile)
	if err != nil {
		return nil, err
	}

	planner, err := o.planner.Planner(ctx, o.Options, cluster)
	if err != nil {
		return nil, err
	}

	all := make([]*adoption, 0, len(installed))

	for _, p := range installed {
		a, err := newAdoption(ctx, planner, p, existing)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v1alpha2.FullName(p), err)
		}

		sources.set(a.variables)
		a.flags = sourceFlags(o.planner)

		if len(a.missing()) == 0 {
			if err := a.compare(ctx, cluster, planner); err != nil {
				return nil, fmt.Errorf("%s: %w", v1alpha2.FullName(p), err)
			}
		}

		all = append(all, a)
	}

	return all, nil
}

// newAdoption returns the adoption of an installed provider by its resource: the one that exists, or a new one with the
// variables of its chart.
func newAdoption(
	ctx context.Context, planner *cli.Planner, installed v1alpha2.Provider, existing []v1alpha2.Provider,
) (*adoption, error) {
	for _, e := range existing {
		if !isLocal(e) || v1alpha2.Label(e) != v1alpha2.Label(installed) {
			continue
		}

		if e.GetNamespace() != installed.GetNamespace() {
			return nil, fmt.Errorf("%s exists, but the provider is installed in namespace %s; delete that resource, which "+
				"removes nothing that it has not installed", v1alpha2.FullName(e), installed.GetNamespace())
		}

		return &adoption{provider: provider{resource: e, exists: true}}, nil
	}

	if err := checkName(existing, installed); err != nil {
		return nil, err
	}

	found, err := chartOf(ctx, planner, installed)
	if err != nil {
		return nil, err
	}

	variables, err := variablesOf(found)

	return &adoption{provider: provider{resource: installed, variables: variables}}, err
}

// chartOf returns the chart of an installed provider. A provider that only the user's configuration of clusterctl knows
// gets its address from there.
func chartOf(ctx context.Context, planner *cli.Planner, installed v1alpha2.Provider) (*plan.Chart, error) {
	found, unknown := planner.Chart(ctx, installed)
	if !errors.As(unknown, new(*fetch.UnknownProviderError)) {
		return found, unknown
	}

	user, err := catalog.LoadUser("")
	if err != nil {
		return nil, err
	}

	entry, _ := user.Find(installed.ProviderType(), installed.GetName())
	config := &v1alpha2.FetchConfiguration{OCI: entry.Artifact(), Image: entry.Image()}

	switch {
	case strings.HasPrefix(entry.URL, "https://"):
		config.URL = entry.URL
	case config.OCI == "" && config.Image == "":
		return nil, unknown
	}

	installed.GetSpec().FetchConfig = config

	return planner.Chart(ctx, installed)
}

// manifests returns the Secret and the resource of a provider that has none yet, in its namespace, which exists.
func (a *adoption) manifests() []client.Object {
	if a.exists {
		return nil
	}

	return a.objects()[1:]
}

// print prints how a provider would be adopted. It shows no values of variables.
func (a *adoption) print(printer *cli.Printer) {
	printer.Printf("")
	printer.Printf("%s", printer.Paint(cli.Bold, v1alpha2.FullName(a.resource)+" "+a.resource.GetSpec().Version))

	if a.exists {
		printer.Printf("  the resource exists")
	}

	a.printVariables(printer)

	for _, w := range a.warnings {
		printer.Printf("%s", printer.Paint(cli.Yellow, "  "+w))
	}

	if len(a.missing()) == 0 {
		a.difference.print(printer)
	}
}

// disruption returns an error if objects would be recreated, pods would restart, or Secrets get other content.
func disruption(adoptions []*adoption) error {
	var all []string
	for _, a := range adoptions {
		all = append(all, a.disrupted...)
	}

	if len(all) == 0 {
		return nil
	}

	return fmt.Errorf("nothing was changed, because the adoption would recreate, restart or change the content of %s, "+
		"as shown above; set the variables that the providers were installed with, or repeat the command with --yes",
		object.List(all, cli.MaxNamed))
}

// adopt creates the resources, and waits until the providers are ready. It can be repeated after an error.
func (o *adoptOptions) adopt(ctx context.Context, cluster *cli.Cluster, adoptions []*adoption) error {
	served, err := cluster.HasProviderKinds()
	if err != nil {
		return err
	}

	if !served {
		return errors.New("the cluster has no resource types of Capstan; install the operator there first")
	}

	resources := make([]v1alpha2.Provider, 0, len(adoptions))

	// Providers wait for core themselves.
	for _, a := range adoptions {
		if err := create(ctx, cluster, a.manifests()...); err != nil {
			return err
		}

		if !a.exists {
			o.Printf("%s created", v1alpha2.FullName(a.resource))
		}

		resources = append(resources, a.resource)
	}

	o.wait.Installed = "installed by clusterctl, not taken over yet"

	return cluster.WaitAll(ctx, o.Options, resources, o.wait, cli.Ready)
}
