package cli

import (
	"cmp"
	"context"
	"errors"
	"os"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/controllers"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/crds/trial"
	"github.com/capstan-project/capstan/controllers/offers"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/takeover"
)

// PlannerFlags configure the planner like the operator.
type PlannerFlags struct {
	operatorNamespace string
	config            controllers.Config
	// newOperator is used instead of the flags if the cluster has no operator; it may be nil.
	newOperator *OperatorConfig
}

// AddPlannerFlags adds the operator's flags to a command that plans what the operator would do.
func AddPlannerFlags(flags *pflag.FlagSet) *PlannerFlags {
	f := &PlannerFlags{}
	flags.StringVar(
		&f.operatorNamespace,
		"operator-namespace",
		"",
		"Namespace of the operator whose configuration is used. Default: search all.",
	)
	flags.StringVar(
		&f.config.Options.ImageRegistry,
		"image-registry",
		"",
		"Registry, as host[:port][/path], that replaces that of every image. Default: the operator's.",
	)
	flags.StringVar(
		&f.config.ChartRepository,
		"chart-repository",
		"",
		"Repository with charts, as oci://HOST[/PATH]. Default: the operator's.",
	)
	flags.StringVar(
		&f.config.RegistryConfig,
		"registry-config",
		"",
		"File with credentials for registries, as written by docker login. Default: the operator's.",
	)
	flags.StringVar(
		&f.config.RegistryCA,
		"registry-ca",
		"",
		"File with additional CA certificates for registries. Default: the operator's.",
	)
	flags.StringVar(
		&f.config.Options.ConfigFile,
		"config",
		"",
		"Configuration file in clusterctl's format. Default: the operator's.",
	)

	return f
}

// Given returns the operator's settings that flags override; the others are empty.
func (f *PlannerFlags) Given() controllers.Config { return f.config }

// OperatorNamespace returns the value of --operator-namespace.
func (f *PlannerFlags) OperatorNamespace() string { return f.operatorNamespace }

// PlanForNewOperator makes the planner use a configuration if there is no operator in the cluster yet.
func (f *PlannerFlags) PlanForNewOperator(config *OperatorConfig) { f.newOperator = config }

// Planner computes what the operator would do, and changes nothing.
type Planner struct {
	planner *plan.Planner
	reader  *preview
	cluster *Cluster
	crds    *crds.Applier
	folder  string
}

// Planner returns a planner for a cluster. Close must be called after use.
func (f *PlannerFlags) Planner(ctx context.Context, o *Options, c *Cluster) (_ *Planner, err error) {
	folder, err := os.MkdirTemp("", "capstan-")
	if err != nil {
		return nil, err
	}

	p := &Planner{folder: folder}

	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()

	config, err := f.operatorConfig(ctx, o, c, folder)
	if err != nil {
		return nil, err
	}

	for _, warning := range o.version().Differences(config.Operator) {
		o.Warnf("%s", warning)
	}

	options, err := config.Load()
	if err != nil {
		return nil, err
	}

	if err := options.SourcePolicy.Parse(c.Config.Host); err != nil {
		return nil, err
	}

	return p, p.connect(c, options)
}

// connect creates the operator's planner. It reads everything from the API server, and keeps charts
// that it builds in memory only.
func (p *Planner) connect(c *Cluster, options controllers.Options) error {
	scheme := runtime.NewScheme()
	if err := crds.AddToScheme(scheme); err != nil {
		return err
	}

	definitions, err := client.New(c.Config, client.Options{Scheme: scheme, Mapper: c.Client.RESTMapper()})
	if err != nil {
		return err
	}

	objects, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		return err
	}

	reader, err := metadata.NewForConfig(c.Config)
	if err != nil {
		return err
	}

	p.cluster, p.reader = c, &preview{Client: c.Client, operator: options.Namespace}
	p.planner = controllers.NewPreviewPlanner(p.reader, options)

	finder := takeover.Finder{Metadata: reader, Definitions: definitions}

	p.crds = crds.NewApplier(crds.Clients{
		Client: definitions, APIReader: definitions, Objects: trial.ClusterObjects{Client: objects},

		HasRelease: func(ctx context.Context, name types.NamespacedName) (bool, error) {
			return release.IsInstalled(ctx, reader, name)
		},
		HasProvider: finder.Anywhere,
	})

	return nil
}

// operatorConfig returns the operator's configuration, with the values of flags taking precedence.
// It uses the defaults, and warns, if the user may not read it or there is no single operator in the
// cluster.
func (f *PlannerFlags) operatorConfig(
	ctx context.Context,
	o *Options,
	c *Cluster,
	folder string,
) (*OperatorConfig, error) {
	config, err := readOperatorConfig(ctx, c.Client, f.operatorNamespace, folder, f.config)

	missing := errors.As(err, new(*NoOperatorError))
	ambiguous := errors.As(err, new(*AmbiguousOperatorError))
	forbidden := apierrors.IsForbidden(err) // not every user may list the Deployments of all namespaces

	switch {
	case missing && f.newOperator != nil:
		return f.newOperator, nil
	case missing || ambiguous || forbidden:
		o.Warnf(
			"the operator's configuration is unknown, so its defaults are used: %s; "+
				"set --operator-namespace, or flags such as --image-registry",
			err,
		)

		if config, err = newOperatorConfig(nil); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	}

	for _, setting := range []struct{ value, flag *string }{
		{&config.Options.ImageRegistry, &f.config.Options.ImageRegistry},
		{&config.ChartRepository, &f.config.ChartRepository},
		{&config.RegistryConfig, &f.config.RegistryConfig},
		{&config.RegistryCA, &f.config.RegistryCA},
		{&config.Options.ConfigFile, &f.config.Options.ConfigFile},
	} {
		*setting.value = cmp.Or(*setting.flag, *setting.value)
	}

	for _, warning := range config.Warnings {
		o.Warnf("%s", warning)
	}

	return config, nil
}

// Close removes temporary files.
func (p *Planner) Close() error { return os.RemoveAll(p.folder) }

// Plan computes what would be installed if the provider's resource were applied as given.
func (p *Planner) Plan(ctx context.Context, provider v1alpha2.Provider) (*plan.Preview, error) {
	request := plan.Request{Provider: provider, Scope: p.cluster.Client}

	return p.planner.Preview(ctx, request, p.cluster.Releases, p.crds)
}

// CheckCRDs checks whether a plan's changes of CRDs are safe for the objects in the cluster. The report is nil if no
// existing CRD changes.
func (p *Planner) CheckCRDs(
	ctx context.Context, provider v1alpha2.Provider, planned *plan.Preview,
) (*trial.Report, error) {
	return p.crds.CheckChanges(ctx, planned.CRDs, trial.AllowedCRDs(provider.GetAnnotations(), planned.Version))
}

// Dropped returns which CRDs of the installed version of a provider another version does not include, and of which of
// these there are objects.
func (p *Planner) Dropped(
	ctx context.Context, provider v1alpha2.Provider, version string,
) ([]string, *trial.Report, error) {
	other := provider.DeepCopyObject().(v1alpha2.Provider)
	other.GetSpec().Version = version

	found, err := p.Chart(ctx, other)
	if found == nil {
		return nil, nil, err
	}

	return p.dropped(ctx, other, found.Chart)
}

// DroppedByRevision is Dropped for a revision, given the digest of its chart.
func (p *Planner) DroppedByRevision(
	ctx context.Context, provider v1alpha2.Provider, chartDigest string,
) ([]string, *trial.Report, error) {
	found, err := p.planner.Charts.Installed(ctx, provider, chartDigest)
	if err != nil {
		return nil, nil, err
	}

	return p.dropped(ctx, provider, found)
}

func (p *Planner) dropped(
	ctx context.Context, provider v1alpha2.Provider, c *chart.Chart,
) ([]string, *trial.Report, error) {
	planned, err := p.planner.CRDs(ctx, p.crds, provider, c)
	if err != nil {
		return nil, nil, err
	}

	allowed := trial.AllowedCRDs(provider.GetAnnotations(), planned.Version())

	report, err := p.crds.CheckDropped(ctx, planned, allowed)

	return planned.Dropped(), report, err
}

// Chart returns the chart of the version that a resource asks for, whatever variables it has.
func (p *Planner) Chart(ctx context.Context, provider v1alpha2.Provider) (*plan.Chart, error) {
	planned, err := p.planner.Plan(ctx, plan.Request{Provider: provider, Scope: p.cluster.Client})

	return planned.Chart, err
}

// Assume makes the planner choose versions as if a provider was installed that has the contract.
func (p *Planner) Assume(provider v1alpha2.Provider, contract string) {
	p.reader.assume(provider, contract)
}

// Versions lists the versions that a provider's source offers, newest first.
func (p *Planner) Versions(ctx context.Context, provider v1alpha2.Provider) ([]v1alpha2.AvailableUpgrade, error) {
	return offers.List(ctx, p.planner.Sources, provider)
}
