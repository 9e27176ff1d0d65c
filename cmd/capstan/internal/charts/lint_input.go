package charts

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/catalog"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/contract"
)

// lintInput reads what `lint` checks.
type lintInput struct {
	identity *Identity
	access   *AccessFlags
	catalog  *cli.CatalogFlags
	options  *cli.Options
}

// lint checks a folder, an archive, or a published version by its address.
func (i *lintInput) lint(ctx context.Context, address string) ([]contract.Finding, error) {
	switch {
	case strings.HasPrefix(address, "oci://"), isTagged(address):
		return i.lintArtifact(ctx, address)
	case strings.HasPrefix(address, "https://"), strings.HasPrefix(address, "http://"):
		return i.lintWebsite(ctx, address)
	case strings.HasSuffix(address, ".tgz"):
		return i.lintArchive(address)
	}

	return lintFolder(ctx, address, i.identity)
}

// isTagged reports whether an address with http:// is that of an artifact in a registry rather than a web server's.
func isTagged(address string) bool {
	return strings.HasPrefix(address, "http://") && strings.Contains(path.Base(address), ":") &&
		strings.Count(address, "/") > 2
}

// lintArchive checks the archive of a chart.
func (i *lintInput) lintArchive(path string) ([]contract.Finding, error) {
	c, err := openArchive(path)
	if err != nil {
		return nil, err
	}

	return i.lintChart(path, c)
}

// lintArtifact checks a chart in a registry, or an artifact with the files of a version.
func (i *lintInput) lintArtifact(ctx context.Context, address string) ([]contract.Finding, error) {
	ref, err := oci.Parse(address)
	if err != nil {
		return nil, err
	}

	client, err := i.access.Client(ref.Registry, i.options.In)
	if err != nil {
		return nil, err
	}

	guess := labelOf(filepath.Base(ref.Repository))

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
func (i *lintInput) lintWebsite(ctx context.Context, address string) ([]contract.Finding, error) {
	known, err := i.catalog.Load()
	if err != nil {
		return nil, err
	}

	provider, err := i.identity.provider(publisherOf(known, address))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}

	options := func(_ context.Context, server source.Server) (transport.Options, error) {
		return transport.Options{Credentials: transport.Token(server.Host, known.PublicToken(server))}, nil
	}

	website, err := source.NewWebsite(address, provider, options)
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
func (i *lintInput) lintPublished(
	ctx context.Context, address string, from *source.Source,
) ([]contract.Finding, error) {
	version, err := from.Resolve(ctx, source.Request{Version: i.identity.version})
	if err != nil {
		return nil, err
	}

	published, err := from.Fetch(ctx, version)
	if published == nil || err != nil && !isMissing(err) { // a missing file is a finding, as in a folder
		return nil, err
	}

	if published.Chart != nil {
		return i.lintChart(address, published.Chart)
	}

	return lintFiles(address, published.Bundle, published.Names, nil)
}

// isMissing reports whether a version lacks a file.
func isMissing(err error) bool {
	return transport.Is(err, transport.Invalid) || transport.Is(err, transport.NotFound)
}
