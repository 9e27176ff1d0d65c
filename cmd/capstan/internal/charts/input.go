package charts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/catalog"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// Input opens what an argument of a command names: a version of a provider.
type Input struct {
	identity *identity
	catalog  *cli.CatalogFlags
	// client returns the client for registries.
	client func() (*oci.Client, error)
}

// AddInputFlags adds flags to a command that reads versions of providers.
func AddInputFlags(flags *pflag.FlagSet) *Input {
	return &Input{
		identity: addIdentityFlags(flags),
		catalog:  cli.AddCatalogFlags(flags),
		client:   addAccessFlags(flags).Client,
	}
}

// open reads what an argument names. If a file of the version is missing, it returns the others as well as the error.
func (i *Input) open(ctx context.Context, argument string) (*published, error) {
	switch {
	case strings.HasPrefix(argument, "oci://"), isTagged(argument):
		return i.openArtifact(ctx, argument)
	case strings.HasPrefix(argument, "https://"), strings.HasPrefix(argument, "http://"):
		return i.openWebsite(ctx, argument)
	}

	if _, err := os.Stat(argument); errors.Is(err, os.ErrNotExist) {
		known, err := i.catalog.Load()
		if err != nil {
			return nil, err
		}

		name, version, _ := strings.Cut(argument, ":")

		entry, err := cli.FindEntry(known, name)
		if err == nil {
			return i.openEntry(ctx, known, entry, version)
		}

		if filepath.Base(argument) == argument {
			return nil, fmt.Errorf("there is no file or folder %s: %w", argument, err)
		}
	}

	if strings.HasSuffix(argument, ".tgz") {
		return openArchive(argument)
	}

	return openFolder(ctx, argument, i.identity)
}

// isTagged reports whether an address with http:// is that of an artifact in a registry rather than a web server's.
func isTagged(address string) bool {
	return strings.HasPrefix(address, "http://") && strings.Contains(path.Base(address), ":") &&
		strings.Count(address, "/") > 2
}

// openArtifact reads a chart in a registry, or an artifact with the files of a version.
func (i *Input) openArtifact(ctx context.Context, address string) (*published, error) {
	ref, err := oci.Parse(address)
	if err != nil {
		return nil, err
	}

	client, err := i.client()
	if err != nil {
		return nil, err
	}

	provider, err := i.identity.provider(labelOf(filepath.Base(ref.Repository)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}

	artifact, err := source.NewArtifact(address, provider, source.OptionsForClient(client))
	if err != nil {
		return nil, err
	}

	return fetch(ctx, address, artifact, i.identity.version)
}

// openWebsite reads a version on a web server, such as a release on GitHub.
func (i *Input) openWebsite(ctx context.Context, address string) (*published, error) {
	known, err := i.catalog.Load()
	if err != nil {
		return nil, err
	}

	provider, err := i.identity.provider(publisherOf(known, address))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}

	website, err := source.NewWebsite(address, provider, publicTokens(known))
	if err != nil {
		return nil, err
	}

	return fetch(ctx, address, website, i.identity.version)
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

// openEntry reads a version of a provider of the catalog.
func (i *Input) openEntry(
	ctx context.Context, known *catalog.Catalog, entry catalog.Entry, version string,
) (*published, error) {
	if len(i.identity.arguments()) > 0 {
		return nil, fmt.Errorf("%s is a known provider; leave out --type, --name and --version, and write %[1]s:VERSION",
			entry.Label())
	}

	from, err := known.Open(entry, catalogAccess(i.client))
	if err != nil {
		return nil, err
	}

	opened, err := fetch(ctx, entry.Label(), from, version)
	if err != nil {
		err = fmt.Errorf("%s: %w", entry.Label(), err)
	}

	return opened, err
}

// fetch reads a version of a remote source.
func fetch(ctx context.Context, place string, from *source.Source, version string) (*published, error) {
	resolved, err := from.Resolve(ctx, source.Request{Version: version})
	if err != nil {
		return nil, err
	}

	release, err := from.Fetch(ctx, resolved)
	if release == nil {
		return nil, err
	}

	return &published{place: place, chart: release.Chart, bundle: release.Bundle, names: release.Names}, err
}
