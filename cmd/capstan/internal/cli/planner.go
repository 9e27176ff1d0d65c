package cli

import (
	"cmp"
	"context"
	"errors"
	"os"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/operatorconfig"
	"github.com/capstan-project/capstan/controllers"
	"github.com/capstan-project/capstan/controllers/fetch"
	"github.com/capstan-project/capstan/controllers/release"
)

// PlannerFlags configure the planner like the operator.
type PlannerFlags struct {
	operatorNamespace string
	config            operatorconfig.Config
}

// AddPlannerFlags adds the operator's flags to a command that plans what the operator would do.
func AddPlannerFlags(flags *pflag.FlagSet) *PlannerFlags {
	f := &PlannerFlags{}
	flags.StringVar(
		&f.operatorNamespace,
		"operator-namespace",
		"",
		"Namespace of the operator, whose configuration is used unless flags override it. Default: search all.",
	)
	flags.StringVar(
		&f.config.ImageRegistry,
		"image-registry",
		"",
		"Registry, as host[:port][/path], that replaces that of every image. Default: the operator's.",
	)
	flags.StringVar(
		&f.config.ChartRepository,
		"chart-repository",
		"",
		"Repository with charts, such as oci://registry.example.com/capi/charts. Default: the operator's.",
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
		&f.config.ConfigFile,
		"config",
		"",
		"Configuration file in clusterctl's format. Default: the operator's.",
	)

	return f
}

// Plan is what a provider's resource asks for.
type Plan struct {
	// Version that spec.version resolves to.
	Version string
	// Rendered is the release that would be installed.
	Rendered *release.Record
	// NewCRDs and ChangedCRDs are the names of the CRDs that would be applied.
	NewCRDs, ChangedCRDs []string
	// Warnings are about parts of the spec that have no effect.
	Warnings []string
}

// Version is a version of a provider with its Cluster API contract.
type Version struct {
	Version, Contract string
}

// Planner computes what the operator would do, and changes nothing.
type Planner struct {
	previewer *controllers.Previewer
	folder    string
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

	registry, err := fetch.NewRegistry(config.ChartRepository, config.RegistryConfig, config.RegistryCA)
	if err != nil {
		return nil, err
	}

	p.previewer, err = controllers.NewPreviewer(c.Config, c.Client, controllers.PreviewOptions{
		Releases:      c.Releases,
		Registry:      registry,
		ImageRegistry: config.ImageRegistry,
		Config:        &fetch.ConfigFile{Path: cmp.Or(config.ConfigFile, fetch.DefaultConfigFile)},
	})

	return p, err
}

// operatorConfig returns the operator's configuration, with the values of flags taking precedence.
// It uses the defaults, and warns, if the user may not read it or there is no single operator in the
// cluster.
func (f *PlannerFlags) operatorConfig(
	ctx context.Context,
	o *Options,
	c *Cluster,
	folder string,
) (*operatorconfig.Config, error) {
	config, err := operatorconfig.Read(ctx, c.Client, f.operatorNamespace, folder)

	missing := errors.As(err, new(*operatorconfig.NotFoundError))
	ambiguous := errors.As(err, new(*operatorconfig.AmbiguousError))
	forbidden := apierrors.IsForbidden(err) // not every user may list the Deployments of all namespaces

	switch {
	case missing || ambiguous || forbidden:
		o.Warnf(
			"the operator's configuration is unknown, so its defaults are used: %s; "+
				"set --operator-namespace, or flags such as --image-registry",
			err,
		)

		config = &operatorconfig.Config{}
	case err != nil:
		return nil, err
	}

	for _, setting := range []struct{ value, flag *string }{
		{&config.ImageRegistry, &f.config.ImageRegistry},
		{&config.ChartRepository, &f.config.ChartRepository},
		{&config.RegistryConfig, &f.config.RegistryConfig},
		{&config.RegistryCA, &f.config.RegistryCA},
		{&config.ConfigFile, &f.config.ConfigFile},
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
func (p *Planner) Plan(ctx context.Context, provider v1alpha2.Provider) (*Plan, error) {
	preview, err := p.previewer.Preview(ctx, provider)
	if err != nil {
		return nil, err
	}

	return &Plan{
		Version:     preview.Version,
		Rendered:    preview.Release,
		NewCRDs:     preview.NewCRDs,
		ChangedCRDs: preview.ChangedCRDs,
		Warnings:    preview.Warnings,
	}, nil
}

// Versions lists the versions that a provider's source has, newest first.
func (p *Planner) Versions(ctx context.Context, provider v1alpha2.Provider) ([]Version, error) {
	offers, err := p.previewer.Offers(ctx, provider)
	if err != nil {
		return nil, err
	}

	versions := make([]Version, 0, len(offers))
	for _, o := range offers {
		versions = append(versions, Version{Version: o.Version, Contract: o.Contract})
	}

	return versions, nil
}

// ReleaseName returns the name of a provider's Helm release.
func ReleaseName(p v1alpha2.Provider) string { return controllers.ReleaseName(p) }
