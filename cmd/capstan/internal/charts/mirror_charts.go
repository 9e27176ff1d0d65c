package charts

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/capstan-project/capstan/api/v1alpha2"
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
	flags.StringVar(&f.folder, "source", "",
		"Folder in clusterctl's local-repository layout to read from. Default: where providers are published.")
	flags.BoolVar(&f.installed, "installed", false, "Copy the charts that are in use in the cluster.")

	return f
}

// load returns what arguments name, and what flags select, with charts that are built. The client is for registries.
func (f *chartFlags) load(ctx context.Context, client *oci.Client, given []string) ([]*published, error) {
	input := &Input{
		identity: &identity{}, catalog: f.catalog,
		client: func() (*oci.Client, error) { return client, nil },
	}

	releases := make([]*published, 0, len(given))
	add := func(name string, opened *published, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}

		if opened.bundle != nil && opened.bundle.Unlisted {
			f.warn("the cluster templates of %s %s could not be listed, so its chart has only the default one; "+
				"set GITHUB_TOKEN, or try again later", name, opened.bundle.Version)
		}

		releases = append(releases, opened)
		_, err = opened.build()

		return err
	}

	for _, argument := range given {
		opened, err := f.open(ctx, input, argument)
		if err := add(argument, opened, err); err != nil {
			return nil, err
		}
	}

	if f.filename != "" {
		resources, err := readResources(f.filename)
		if err != nil {
			return nil, err
		}

		for _, r := range resources {
			opened, err := f.openResource(ctx, input, client, r)
			if err := add(v1alpha2.Label(r.Provider), opened, err); err != nil {
				return nil, err
			}
		}
	}

	if !f.installed {
		return releases, nil
	}

	installed, err := f.readInstalled(ctx)

	return append(releases, installed...), err
}

// open reads what an argument names; from --source if that is set.
func (f *chartFlags) open(ctx context.Context, input *Input, argument string) (*published, error) {
	if f.folder == "" {
		return input.open(ctx, argument)
	}

	name, version, _ := strings.Cut(argument, ":")

	from, err := source.NewDirectory(filepath.Join(f.folder, name))
	if err != nil {
		return nil, err
	}

	return fetch(ctx, argument, from, version)
}

// openResource reads the version that a resource asks for.
func (f *chartFlags) openResource(
	ctx context.Context, input *Input, client *oci.Client, r *resource,
) (*published, error) {
	spec := r.GetSpec()
	label := v1alpha2.Label(r.Provider)

	if f.folder != "" || spec.FetchConfig == nil {
		return f.open(ctx, input, label+":"+spec.Version)
	}

	known, err := f.catalog.Load()
	if err != nil {
		return nil, err
	}

	from, err := r.source(client, known)
	if err != nil {
		return nil, err
	}

	return fetch(ctx, label, from, spec.Version)
}

// readInstalled reads the charts of the installed providers, which the operator keeps in the
// cluster.
func (f *chartFlags) readInstalled(ctx context.Context) ([]*published, error) {
	cluster, err := f.cluster.Connect()
	if err != nil {
		return nil, err
	}

	providers, err := cluster.Providers(ctx)
	if err != nil {
		return nil, err
	}

	installed := make([]*published, 0, len(providers))
	for _, p := range providers {
		status := p.GetStatus()
		if status.Chart == nil {
			return nil, fmt.Errorf("%s has no chart yet; its conditions contain the reason", v1alpha2.FullName(p))
		}

		found, err := store.Open(cluster.Client, status.Chart.Reference).Get(ctx, status.Chart.Digest)
		if err != nil {
			return nil, fmt.Errorf("the chart of %s: %w", v1alpha2.FullName(p), err)
		}

		installed = append(installed, &published{built: found.Chart})
	}

	return installed, nil
}
