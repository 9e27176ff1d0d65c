package charts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

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

// load returns the releases of the given providers, as LABEL[:VERSION], and of those that flags
// select. The client is for registries in the catalog.
func (f *chartFlags) load(ctx context.Context, client *oci.Client, given []string) ([]release, error) {
	wanted := slices.Clone(given)

	if f.filename != "" {
		resources, err := readResources(f.filename)
		if err != nil {
			return nil, err
		}

		wanted = append(wanted, resources...)
	}

	releases := make([]release, 0, len(wanted))

	for _, provider := range wanted {
		name, version, _ := strings.Cut(provider, ":")

		r, err := f.build(ctx, client, name, version)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
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
func (f *chartFlags) build(ctx context.Context, client *oci.Client, name, version string) (release, error) {
	from, err := f.source(client, name)
	if err != nil {
		return release{}, err
	}

	resolved, err := from.Resolve(ctx, source.Request{Version: version})
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
			"set GITHUB_TOKEN, or try again later", name, resolved.Name)
	}

	built, err := chartgen.Build(published.Bundle)

	return release{chart: built, components: published.Components}, err
}

// source returns the source of a provider.
func (f *chartFlags) source(client *oci.Client, name string) (*source.Source, error) {
	if f.folder != "" {
		return source.NewDirectory(filepath.Join(f.folder, name))
	}

	known, err := f.catalog.Load()
	if err != nil {
		return nil, err
	}

	entry, err := cli.FindEntry(known, name)
	if err != nil {
		return nil, err
	}

	return known.Open(entry, catalog.Access{Registry: func(context.Context, oci.Reference) (source.Access, error) {
		return source.Access{Client: client}, nil
	}})
}

// readResources reads the providers in a file of resources, as LABEL:VERSION.
func readResources(file string) ([]string, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()

	var wanted []string

	decoder := utilyaml.NewYAMLOrJSONDecoder(in, 4096)

	for {
		object := &unstructured.Unstructured{}

		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			break
		}

		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}

		t := v1alpha2.ProviderType(object.GetKind())
		if object.GroupVersionKind().Group != v1alpha2.GroupVersion.Group || t.New() == nil {
			continue // such as Namespaces and Secrets
		}

		version, _, _ := unstructured.NestedString(object.Object, "spec", "version")
		wanted = append(wanted, t.Label(object.GetName())+":"+version)
	}

	if len(wanted) == 0 {
		return nil, fmt.Errorf("%s contains no provider resource of %s", file, v1alpha2.GroupVersion.Group)
	}

	return wanted, nil
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
