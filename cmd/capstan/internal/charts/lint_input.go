package charts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/lint"
	"github.com/capstan-project/capstan/chartgen/supply/catalog"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/chartgen/supply/web"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/registries"
)

// identityFlags say which provider a folder or an address belongs to, if its name does not.
type identityFlags struct{ typ, name, version string }

func addIdentityFlags(flags *pflag.FlagSet) *identityFlags {
	f := &identityFlags{}
	types := strings.Join(typeNames(), ", ")
	flags.StringVar(&f.typ, "type", "", "Type of the provider, if the source does not tell: "+types+".")
	cli.SetValues(flags, "type", typeNames()...)
	flags.StringVar(&f.name, "name", "", "Name of the provider, if the source does not tell.")
	flags.StringVar(&f.version, "version", "", "Version of the provider. Default: that of the source, or its newest.")

	return f
}

// typeNames returns the names of the types of providers, as in the names of their components files.
func typeNames() []string {
	names := make([]string, 0, len(v1alpha2.ProviderTypes()))
	for _, t := range v1alpha2.ProviderTypes() {
		names = append(names, typeName(t))
	}

	return names
}

func typeName(t v1alpha2.ProviderType) string {
	return strings.TrimSuffix(t.ComponentsFile(), "-"+bundle.ComponentsFile)
}

// provider returns the provider that the flags name. What they leave out is that of a guess, which may be
// empty.
func (f *identityFlags) provider(guess bundle.Provider) (bundle.Provider, error) {
	t := v1alpha2.ProviderType(guess.Type)

	if f.typ != "" {
		t = ""

		for _, known := range v1alpha2.ProviderTypes() {
			if typeName(known) == f.typ {
				t = known
			}
		}

		if t == "" {
			return bundle.Provider{}, fmt.Errorf("unknown --type %q; use one of %s", f.typ, strings.Join(typeNames(), ", "))
		}
	}

	name := cmp.Or(f.name, guess.Name)
	if t == v1alpha2.CoreProviderType {
		name = cmp.Or(name, "cluster-api")
	}

	if t == "" || name == "" {
		return bundle.Provider{}, errors.New("it is not known which provider this is; set --type and --name")
	}

	return source.Provider(t, name), nil
}

// lintInput reads what `chart lint` checks.
type lintInput struct {
	identity *identityFlags
	access   *registries.AccessFlags
	catalog  *cli.CatalogFlags
	options  *cli.Options
}

// lint checks a folder, an archive, or a published version by its address.
func (i *lintInput) lint(ctx context.Context, address string) ([]lint.Finding, error) {
	switch {
	case strings.HasPrefix(address, "oci://"):
		return i.lintArtifact(ctx, address)
	case strings.HasPrefix(address, "https://"), strings.HasPrefix(address, "http://"):
		return i.lintWebsite(ctx, address)
	case strings.HasSuffix(address, ".tgz"):
		return i.lintArchive(address)
	}

	if flat, err := isFlat(address); err != nil || flat {
		return i.lintFlat(address, err)
	}

	return i.lintVersionFolder(ctx, address)
}

// lintVersionFolder checks a version in the layout of a local repository.
func (i *lintInput) lintVersionFolder(ctx context.Context, path string) ([]lint.Finding, error) {
	if *i.identity != (identityFlags{}) {
		return nil, fmt.Errorf("%s is the folder of a provider, whose name and versions are those of its folders; "+
			"leave out --type, --name and --version", path)
	}

	return lintFolder(ctx, path)
}

// lintArchive checks the archive of a chart.
func (i *lintInput) lintArchive(path string) ([]lint.Finding, error) {
	c, err := openArchive(path)
	if err != nil {
		return nil, err
	}

	return i.lintChart(path, c)
}

// lintArtifact checks a chart in a registry, or an artifact with the files of a version.
func (i *lintInput) lintArtifact(ctx context.Context, address string) ([]lint.Finding, error) {
	ref, err := oci.Parse(address)
	if err != nil {
		return nil, err
	}

	client, err := i.access.Client(ref.Registry, i.options.In)
	if err != nil {
		return nil, err
	}

	guess, _ := labelOf(filepath.Base(ref.Repository))

	provider, err := i.identity.provider(guess)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}

	artifact, err := source.NewArtifact(address, provider, source.OptionsForClient(client))
	if err != nil {
		return nil, err
	}

	return i.lintPublished(ctx, address, artifact)
}

// lintWebsite checks a version on a web server, such as a release on GitHub.
func (i *lintInput) lintWebsite(ctx context.Context, address string) ([]lint.Finding, error) {
	known, err := i.catalog.Load()
	if err != nil {
		return nil, err
	}

	provider, err := i.identity.provider(publisherOf(known, address))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}

	token := func(_ context.Context, server source.Server) (web.Credentials, error) {
		return web.Credentials{Token: known.PublicToken(server)}, nil
	}

	website, err := source.NewWebsite(address, provider, known.WebOptions(token, nil))
	if err != nil {
		return nil, err
	}

	return i.lintPublished(ctx, address, website)
}

// publisherOf returns the provider of a catalog that is published at an address. It is empty if none is, or
// several are and the name of the file does not tell which.
func publisherOf(known *catalog.Catalog, address string) bundle.Provider {
	project := func(url string) string { before, _, _ := strings.Cut(url, "/releases"); return before }

	var found []bundle.Provider

	for _, e := range known.Entries {
		sameFile := !strings.HasSuffix(address, ".yaml") || filepath.Base(e.URL) == filepath.Base(address)
		if project(e.URL) == project(address) && sameFile {
			found = append(found, source.Provider(e.Type, e.Name))
		}
	}

	if len(found) != 1 {
		return bundle.Provider{}
	}

	return found[0]
}

// lintPublished checks a version of a remote source.
func (i *lintInput) lintPublished(ctx context.Context, address string, from source.Source) ([]lint.Finding, error) {
	version, err := source.Resolve(ctx, from, source.Request{Version: i.identity.version})
	if err != nil {
		return nil, err
	}

	if charts, ok := from.(source.ChartSource); ok {
		published, err := charts.Chart(ctx, version)
		if err != nil {
			return nil, err
		}

		if published != nil {
			return i.lintChart(address, published.Chart)
		}
	}

	b, err := from.Fetch(ctx, version)
	if err != nil {
		return nil, err
	}

	return lint.Bundle(b, nil), nil
}
