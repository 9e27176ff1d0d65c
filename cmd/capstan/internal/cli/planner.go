package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/catalog"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/controllers"
	"github.com/capstan-project/capstan/controllers/crds/trial"
	"github.com/capstan-project/capstan/controllers/fetch"
	"github.com/capstan-project/capstan/controllers/offers"
	"github.com/capstan-project/capstan/controllers/plan"
)

// PlannerFlags configure the planner like the operator.
type PlannerFlags struct {
	OperatorNamespace string
	// Config has the operator's settings that flags override; the others are empty.
	Config controllers.Config
	// NewOperator is used if the cluster has no operator yet; it may be nil.
	NewOperator *OperatorConfig

	// flags are those of the command.
	flags *pflag.FlagSet
}

// Repeated returns the flags of these that the user has given, as they are typed, but for some.
func (f *PlannerFlags) Repeated(but ...string) string {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	AddPlannerFlags(own)

	text := ""

	f.flags.Visit(func(flag *pflag.Flag) {
		if own.Lookup(flag.Name) != nil && !slices.Contains(but, flag.Name) {
			text += Repeated(flag)
		}
	})

	return text
}

// AddPlannerFlags adds the operator's flags to a command that plans what the operator would do.
func AddPlannerFlags(flags *pflag.FlagSet) *PlannerFlags {
	f := &PlannerFlags{flags: flags}
	flags.StringVar(&f.OperatorNamespace, "operator-namespace", "",
		"Namespace of the operator whose configuration is used. Default: search all.")
	flags.StringVar(&f.Config.Options.ImageRegistry, "image-registry", "",
		"Registry, as host[:port][/path], that replaces that of every image. Default: the operator's.")
	flags.StringVar(&f.Config.ChartRepository, "chart-repository", "",
		"Repository with charts, as oci://HOST[/PATH]. Default: the operator's.")
	flags.StringVar(&f.Config.RegistryConfig, "registry-config", "",
		"File with credentials for registries, as written by docker login. Default: docker's own.")
	flags.StringVar(&f.Config.RegistryCA, "registry-ca", "",
		"File with additional CA certificates for registries. Default: the operator's.")
	flags.StringVar(&f.Config.Options.ConfigFile, "config", "",
		"Configuration file in clusterctl's format. Default: the operator's.")

	return f
}

// Planner computes what the operator would do, and changes nothing. It reads everything from the API server, and keeps
// charts that it builds in memory only.
type Planner struct {
	planner *plan.Planner
	reader  *preview
	cluster *Cluster
	options controllers.Options
	// unknown are the variables of the operator's environment, which only the operator knows.
	unknown []string
	// knowsSources is set if it has the operator's configuration or the user's, and not defaults.
	knowsSources bool
}

// Planner returns a planner for a cluster.
func (f *PlannerFlags) Planner(ctx context.Context, o *Options, c *Cluster) (*Planner, error) {
	config, err := f.operatorConfig(ctx, o, c)
	if err != nil {
		return nil, err
	}

	for _, warning := range slices.Concat(config.Warnings, o.ProgramVersion().Differences(config.Operator)) {
		o.Warnf("%s", warning)
	}

	options, err := f.options(config)
	if err != nil {
		return nil, err
	}

	if err := options.SourcePolicy.Parse(c.Config.Host); err != nil {
		return nil, err
	}

	known := config.Contents != nil || f.Config.Options.ConfigFile != "" || f.Config.ChartRepository != ""
	reader := &preview{Client: c.Client, operator: options.Namespace}

	return &Planner{
		planner: controllers.NewPreviewPlanner(reader, options), reader: reader, cluster: c, options: options,
		unknown: config.EnvironmentNames, knowsSources: known,
	}, nil
}

// operatorConfig returns the operator's configuration, with the values of flags taking precedence.
// It uses the defaults, and warns, if the user may not read it or there is no single operator in the
// cluster.
func (f *PlannerFlags) operatorConfig(ctx context.Context, o *Options, c *Cluster) (*OperatorConfig, error) {
	config, err := readOperatorConfig(ctx, c.Client, f.OperatorNamespace)

	missing := new(OperatorError)
	isMissing := errors.As(err, &missing)
	forbidden := apierrors.IsForbidden(err) // not every user may list the Deployments of all namespaces

	switch {
	case isMissing && len(missing.Deployments) == 0 && f.NewOperator != nil:
		config = f.NewOperator
	case isMissing || forbidden:
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

	config.Options.ImageRegistry = cmp.Or(f.Config.Options.ImageRegistry, config.Options.ImageRegistry)
	config.ChartRepository = cmp.Or(f.Config.ChartRepository, config.ChartRepository)
	config.leaveOut(f.Config.Files())

	return config, nil
}

// leaveOut replaces the operator's files by those that flags give, and leaves out those that are not published. A
// warning names what is left out.
func (c *OperatorConfig) leaveOut(given []controllers.FileFlag) {
	var unknown []string

	for i, f := range c.Files() {
		_, published := c.Contents[*f.Path]

		switch {
		case *given[i].Path != "":
			delete(c.Contents, *given[i].Path)
			*f.Path = *given[i].Path
		case !published && *f.Path != "" && *f.Path != fetch.DefaultConfigFile:
			unknown = append(unknown, "--"+f.Name)
			*f.Path = ""
		}
	}

	if len(c.EnvironmentNames) > 0 {
		unknown = append(unknown, "variables "+strings.Join(c.EnvironmentNames, ", ")+" where they are not installed yet")
	}

	if len(unknown) > 0 {
		c.Warnings = append(c.Warnings, "not known here, and left out: the operator's "+strings.Join(unknown, ", "))
	}
}

// options returns the operator's settings, with what the user may read instead of the operator: credentials for
// registries, and tokens of clusterctl's configuration and the environment.
func (f *PlannerFlags) options(config *OperatorConfig) (controllers.Options, error) {
	credentials, err := RegistryCredentials(f.Config.RegistryConfig)
	if err != nil {
		return controllers.Options{}, err
	}

	read := func(path string) ([]byte, error) {
		if content, published := config.Contents[path]; published {
			return []byte(content), nil
		}

		return ReadFile(path)
	}

	options, err := config.Load(read, credentials)
	if err != nil {
		return options, err
	}

	known, err := f.catalog(config)
	options.Catalog = func() (*catalog.Catalog, error) { return known, nil }

	return options, err
}

// RegistryCredentials returns the credentials for registries in a file; docker's own if its name is empty.
func RegistryCredentials(file string) (transport.Credentials, error) {
	if file == "" {
		return transport.UserDockerConfig()
	}

	credentials, err := transport.DockerConfigFile(file)
	if err != nil {
		return nil, fmt.Errorf("--registry-config: %w", FileError(err))
	}

	return credentials, nil
}

// Registries returns a client for registries with the CAs and the credentials in files, whose names may be empty.
func Registries(ca, config string) (*oci.Client, error) {
	credentials, err := RegistryCredentials(config)
	if err != nil {
		return nil, err
	}

	options := transport.Options{Credentials: credentials}

	if ca != "" {
		if options.CA, err = ReadFile(ca); err != nil {
			return nil, fmt.Errorf("--registry-ca: %w", err)
		}
	}

	return oci.NewClient(options)
}

// catalog returns the providers and images that the operator is configured with, unless a flag names a file with
// others or nothing is known of the operator.
func (f *PlannerFlags) catalog(config *OperatorConfig) (*catalog.Catalog, error) {
	own, err := catalog.LoadUser(f.Config.Options.ConfigFile)
	if err != nil || f.Config.Options.ConfigFile != "" || config.Contents == nil {
		return own, err
	}

	operators, err := catalog.Parse([]byte(config.Contents[config.Options.ConfigFile]))
	if err != nil {
		return nil, fmt.Errorf("the operator's configuration: %w", err)
	}

	return operators.WithVariablesOf(own), nil
}

// Plan computes what would be installed if the provider's resource were applied as given.
func (p *Planner) Plan(ctx context.Context, provider v1alpha2.Provider) (*plan.Preview, error) {
	planner, err := p.withEnvironment(ctx, provider)
	if err != nil {
		return nil, err
	}

	request := plan.Request{Provider: provider, Scope: p.cluster.Client}

	preview, err := planner.Preview(ctx, request, p.cluster.Releases, p.cluster.CRDs)

	return preview, fromHere(provider, err)
}

// PlanWithoutSecrets is Plan for users who may not read Secrets. Variables that a Secret or the operator's environment
// can set have a text instead of their values, and CRDs that the user may not read are left out.
func (p *Planner) PlanWithoutSecrets(ctx context.Context, provider v1alpha2.Provider) (*plan.Preview, error) {
	reader := *p.reader
	reader.withoutSecrets = true
	planner := controllers.NewPreviewPlanner(&reader, p.options)

	request := plan.Request{Provider: provider, Scope: p.cluster.Client}

	planned, err := planner.Plan(ctx, request)
	if planned.Chart == nil {
		return nil, fromHere(provider, err)
	}

	_, names, err := chartgen.RequiredVariables(planned.Chart.Chart)
	if err != nil {
		return nil, err
	}

	if _, hasSecret := provider.GetSpec().VariablesSecret(provider.GetNamespace()); !hasSecret {
		names = slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(p.unknown, name) })
	}

	request.Provider = provider.DeepCopyObject().(v1alpha2.Provider)
	variables := map[string]string{}

	prefixes := chartgen.Prefixes(planned.Chart.Chart)
	for _, name := range names {
		variables[name] = prefixes[name] + "(unknown " + name + ")"
	}

	maps.Copy(variables, provider.GetSpec().Variables)
	request.Provider.GetSpec().Variables = variables

	preview, err := planner.Preview(ctx, request, p.cluster.Releases, p.cluster.CRDs)
	if preview != nil && apierrors.IsForbidden(err) {
		return preview, nil
	}

	return preview, err
}

// withEnvironment returns the planner with the values that a provider was installed with of the variables that only the
// operator knows.
func (p *Planner) withEnvironment(ctx context.Context, provider v1alpha2.Provider) (*plan.Planner, error) {
	if len(p.unknown) == 0 {
		return p.planner, nil
	}

	installed, _, err := p.cluster.Installed(ctx, provider)
	if err != nil {
		return nil, err
	}

	planner := *p.planner
	planner.Environment = plan.Environment{}

	variables, _ := installed.Values["variables"].(map[string]any)

	for _, name := range p.unknown {
		if value, set := variables[name]; set {
			planner.Environment[name] = fmt.Sprint(value)
		}
	}

	return &planner, nil
}

// fromHere explains an error of a source that only the operator can read.
func fromHere(provider v1alpha2.Provider, err error) error {
	config := provider.GetSpec().FetchConfig
	if config == nil || config.Directory == "" || !source.IsNotFound(err) {
		return err
	}

	return fmt.Errorf("%w; spec.fetchConfig.directory is a folder of the operator's Pod, which only the operator can "+
		"read: what is known here is the installed version", err)
}

// CheckCRDs checks whether a plan's changes of CRDs are safe for the objects in the cluster. The report is nil if no
// existing CRD changes.
func (p *Planner) CheckCRDs(
	ctx context.Context, provider v1alpha2.Provider, planned *plan.Preview,
) (*trial.Report, error) {
	if planned.CRDs == nil { // the user may not read them
		return nil, nil
	}

	return p.cluster.CRDs.CheckChanges(ctx, planned.CRDs, trial.AllowedCRDs(provider.GetAnnotations(), planned.Version))
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
	planned, err := p.planner.CRDs(ctx, p.cluster.CRDs, provider, c)
	if err != nil {
		return nil, nil, err
	}

	allowed := trial.AllowedCRDs(provider.GetAnnotations(), planned.Version())

	report, err := p.cluster.CRDs.CheckDropped(ctx, planned, allowed)

	return planned.Dropped(), report, err
}

// Chart returns the chart of the version that a resource asks for, whatever variables it has.
func (p *Planner) Chart(ctx context.Context, provider v1alpha2.Provider) (*plan.Chart, error) {
	planned, err := p.planner.Plan(ctx, plan.Request{Provider: provider, Scope: p.cluster.Client})

	return planned.Chart, fromHere(provider, err)
}

// Assume makes the planner choose versions as if a provider was installed that has the contract.
func (p *Planner) Assume(provider v1alpha2.Provider, contract string) {
	p.reader.assume(provider, contract)
}

// Versions lists the versions that a provider's source offers, newest first.
func (p *Planner) Versions(ctx context.Context, provider v1alpha2.Provider) ([]v1alpha2.AvailableUpgrade, error) {
	versions, err := offers.List(ctx, p.planner.Sources, provider)

	return versions, fromHere(provider, err)
}

// CheckOffered returns an error if the source of a provider does not have a version. It is nil if that cannot be found
// out here: the operator may have access to what the user has not.
func (p *Planner) CheckOffered(ctx context.Context, provider v1alpha2.Provider, version string) error {
	if !p.knowsSources && provider.GetSpec().FetchConfig == nil {
		return nil
	}

	offered, err := p.Versions(ctx, provider)
	if err != nil {
		return nil //nolint:nilerr // see above
	}

	names := Map(offered, func(o v1alpha2.AvailableUpgrade) string { return o.Version })

	_, err = source.Pick(source.ParseVersions(names), version, "")

	return err
}
