package charts

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/catalog"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/chartgen/store"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// chartFlags select the charts to mirror.
type chartFlags struct {
	cluster *cli.ClusterFlags
	catalog *cli.CatalogFlags

	filename  string
	folder    string
	installed bool
	// warn reports what the charts lack.
	warn func(format string, args ...any)
}

func addChartFlags(flags *pflag.FlagSet, warn func(format string, args ...any)) *chartFlags {
	f := &chartFlags{cluster: cli.AddClusterFlags(flags), catalog: cli.AddCatalogFlags(flags), warn: warn}
	flags.StringVarP(&f.filename, "filename", "f", "", "File with the resources of the providers to copy.")
	flags.StringVar(
		&f.folder,
		"source",
		"",
		"Folder in clusterctl's local-repository layout to read from. Default: where providers are published.",
	)
	flags.BoolVar(&f.installed, "installed", false, "Copy the charts that are in use in the cluster.")

	return f
}

// release is the chart of a provider's version.
type release struct {
	chart *chart.Chart
	// components are those that were published; nil if the chart is all there is.
	components []byte
}

// wanted is a version of a provider.
type wanted struct {
	name, version string
	// resource is what asks for it; nil if an argument does.
	resource *resource
}

// load returns the releases of the given providers, as LABEL[:VERSION], and of those that flags
// select. The client is for registries in the catalog.
func (f *chartFlags) load(ctx context.Context, client *oci.Client, given []string) ([]release, error) {
	var all []wanted

	for _, argument := range given {
		name, version, _ := strings.Cut(argument, ":")
		all = append(all, wanted{name: name, version: version})
	}

	if f.filename != "" {
		resources, err := readResources(f.filename)
		if err != nil {
			return nil, err
		}

		for _, r := range resources {
			all = append(all, wanted{name: v1alpha2.Label(r.Provider), version: r.GetSpec().Version, resource: r})
		}
	}

	releases := make([]release, 0, len(all))

	for _, w := range all {
		r, err := f.build(ctx, client, w)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.name, err)
		}

		releases = append(releases, r)
	}

	if !f.installed {
		return releases, nil
	}

	installed, err := f.installedCharts(ctx)
	for _, c := range installed {
		releases = append(releases, release{chart: c})
	}

	return releases, err
}

// build builds the chart of a provider's version, or reads the one that is published.
func (f *chartFlags) build(ctx context.Context, client *oci.Client, w wanted) (release, error) {
	from, err := f.source(client, w)
	if err != nil {
		return release{}, err
	}

	resolved, err := from.Resolve(ctx, source.Request{Version: w.version})
	if err != nil {
		return release{}, err
	}

	published, err := from.Fetch(ctx, resolved)
	if err != nil {
		return release{}, err
	}

	if published.Chart != nil {
		return release{chart: published.Chart}, nil
	}

	if published.Unlisted {
		f.warn("the cluster templates of %s %s could not be listed, so its chart has only the default one; "+
			"set GITHUB_TOKEN, or try again later", w.name, resolved.Name)
	}

	built, err := chartgen.Build(published.Bundle)

	return release{chart: built, components: published.Components}, err
}

// source returns the source of a provider.
func (f *chartFlags) source(client *oci.Client, w wanted) (*source.Source, error) {
	if f.folder != "" {
		return source.NewDirectory(filepath.Join(f.folder, w.name))
	}

	known, err := f.catalog.Load()
	if err != nil {
		return nil, err
	}

	if w.resource != nil && w.resource.GetSpec().FetchConfig != nil {
		return w.resource.source(client, known)
	}

	entry, err := cli.FindEntry(known, w.name)
	if err != nil {
		return nil, err
	}

	return known.Open(entry, catalog.Access{Registry: func(context.Context, oci.Reference) (source.Access, error) {
		return source.Access{Client: client}, nil
	}})
}

// installedCharts reads the charts of the installed providers, which the operator keeps in the
// cluster.
func (f *chartFlags) installedCharts(ctx context.Context) ([]*chart.Chart, error) {
	cluster, err := f.cluster.Connect()
	if err != nil {
		return nil, err
	}

	providers, err := cluster.Providers(ctx)
	if err != nil {
		return nil, err
	}

	charts := make([]*chart.Chart, 0, len(providers))
	for _, p := range providers {
		status := p.GetStatus()
		if status.Chart == nil {
			return nil, fmt.Errorf("%s has no chart yet; its conditions contain the reason", v1alpha2.FullName(p))
		}

		found, err := store.At(cluster.Client, status.Chart.Reference).Get(ctx, status.Chart.Digest)
		if err != nil {
			return nil, fmt.Errorf("the chart of %s: %w", v1alpha2.FullName(p), err)
		}

		charts = append(charts, found.Chart)
	}

	return charts, nil
}
