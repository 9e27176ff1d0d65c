// Package adopt takes over the providers that other programs have installed.
package adopt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// options are the flags of `adopt`.
type options struct {
	*cli.Options

	cluster    *cli.ClusterFlags
	planner    *cli.PlannerFlags
	wait       *cli.WaitFlags
	output     *cli.OutputFlags
	clusterctl *cli.CatalogFlags

	installer    string
	dryRun       bool
	contextLines int
}

// NewCommand returns `capstan adopt`.
func NewCommand(o *cli.Options) *cobra.Command {
	opts := &options{Options: o}
	cmd := &cobra.Command{
		Use:   "adopt [PROVIDER...]",
		Short: "Take over the providers of clusterctl or cluster-api-operator",
		Long: `Take over providers that clusterctl or cluster-api-operator has installed: all of them, or those that are
named. Their objects stay, and their pods keep running, unless the difference that is shown says otherwise.

For each provider of clusterctl, a resource with the installed version is created in the provider's namespace.
Values of variables are found by comparing the provider's components with its objects; those that differ from their
defaults are written to a Secret. Variables that no object shows are taken from the environment or from clusterctl's
configuration, and listed if they are not there either.

The resources of cluster-api-operator stay as they are. That operator is stopped, also for providers that are not
named: its Deployment is scaled to 0, and its webhooks are deleted. Once a provider is ready, so are the Secrets in
which its components, with the values of variables, are cached.

The command shows what the adoption changes, apart from the label and the annotations of Helm releases. Then it
creates the resources, and waits until the providers are ready. With --dry-run, it only shows that. With --output yaml
or json, it prints the resources and Secrets, with the values of variables, and changes nothing either.`,
		Example: `  capstan adopt --dry-run
  capstan adopt
  capstan adopt cluster-api infrastructure-aws
  capstan adopt --output yaml > providers.yaml`,
		RunE: cli.Run(opts.run),
	}

	cli.Renamed(cmd, "from", "use --installer")

	flags := cmd.Flags()
	opts.cluster = cli.AddClusterFlags(flags)
	opts.planner = cli.AddPlannerFlags(flags)
	opts.wait = cli.AddWaitFlags(flags, "the providers are ready")
	opts.output = cli.AddOutputFlags(flags)
	opts.clusterctl = cli.AddCatalogFlag(flags, "clusterctl-config")
	flags.StringVar(&opts.installer, "installer", "",
		"Program that has installed the providers: "+strings.Join(names(), ", ")+". Default: the one that is found.")
	cli.SetValues(flags, "installer", names()...)
	flags.BoolVar(&opts.dryRun, "dry-run", false, "Only show what would be done.")
	flags.IntVarP(&opts.contextLines, "unified", "U", 3, "Number of unchanged lines around changes.")

	return cmd
}

func (o *options) run(ctx context.Context, args []string) error {
	printer, cluster, err := o.Connect(o.output, o.cluster)
	if err != nil {
		return err
	}

	source, found, err := find(ctx, cluster, o.installer)
	if err != nil {
		return err
	}

	if found.Installations, err = selected(found, args); err != nil {
		return err
	}

	if len(found.Installations) == 0 && printer.Format == cli.FormatTable {
		printer.Printf("Nothing to adopt: Capstan manages %s already", labels(found.Managed))
		return nil
	}

	proposals, err := o.propose(ctx, cluster, found.Installations)
	if err != nil {
		return err
	}

	if printer.Format != cli.FormatTable {
		var manifests []client.Object
		for _, p := range proposals {
			manifests = append(manifests, p.manifests()...)
		}

		return printer.Manifests(manifests, "values of variables")
	}

	printer.Printf("%s installed by %s", cli.Count(len(proposals), "provider"), source.Name())

	for _, p := range proposals {
		p.print(printer)
	}

	if err := incomplete(proposals); err != nil {
		return err
	}

	if o.dryRun {
		printSteps(printer, found, proposals)
		return nil
	}

	if err := checkInstalled(ctx, cluster); err != nil {
		return err
	}

	return o.takeOver(ctx, cluster, found, proposals)
}

// propose makes a proposal for each installation.
func (o *options) propose(
	ctx context.Context, cluster *cli.Cluster, installations []Installation,
) ([]*proposal, error) {
	planner, err := o.planner.Planner(ctx, o.Options, cluster)
	if err != nil {
		return nil, err
	}
	defer planner.Close()

	user, err := o.clusterctl.Load()
	if err != nil {
		return nil, err
	}

	var existing []v1alpha2.Provider

	served, err := cluster.HasProviderKinds()
	if err != nil {
		return nil, err
	}

	if served {
		if existing, err = cluster.ProvidersIn(ctx, ""); err != nil {
			return nil, err
		}
	}

	p := &proposer{cluster: cluster, planner: planner, user: user, contextLines: o.contextLines}

	var proposals []*proposal

	for _, i := range installations {
		proposal, err := p.propose(ctx, i, existing)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v1alpha2.FullName(i.Provider), err)
		}

		proposals = append(proposals, proposal)
	}

	return proposals, nil
}

// category is one that only Capstan's CRDs of provider resources have.
const category = "capstan"

// checkInstalled returns an error if the CRDs of the provider resources are missing, or cluster-api-operator's. What
// must not be read counts as Capstan's.
func checkInstalled(ctx context.Context, cluster *cli.Cluster) error {
	missing := errors.New("the cluster has no resource types of Capstan; install the operator there first")

	kind := v1alpha2.GroupVersion.WithKind(string(v1alpha2.CoreProviderType))

	mapping, err := cluster.Client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return missing
	}

	if err != nil {
		return err
	}

	definition := &apiextensionsv1.CustomResourceDefinition{}

	err = cluster.Client.Get(ctx, client.ObjectKey{Name: mapping.Resource.GroupResource().String()}, definition)
	if apierrors.IsForbidden(err) {
		return nil
	}

	if err == nil && !slices.Contains(definition.Spec.Names.Categories, category) {
		return missing
	}

	return err
}

// incomplete returns an error if variables are missing.
func incomplete(proposals []*proposal) error {
	var all []string

	for _, p := range proposals {
		if missing := p.missing(); len(missing) > 0 {
			all = append(all, fmt.Sprintf("%s of %s", strings.Join(missing, ", "), v1alpha2.Label(p.Provider)))
		}
	}

	if len(all) == 0 {
		return nil
	}

	return fmt.Errorf("nothing was changed, because required variables are unknown: %s; set them in the environment, as "+
		"for clusterctl", strings.Join(all, "; "))
}
