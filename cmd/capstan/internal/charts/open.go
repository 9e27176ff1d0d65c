package charts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/supply/ranges"
	"github.com/capstan-project/capstan/chartgen/supply/source"
)

// Open reads a chart archive, or builds the chart of a provider's folder.
func Open(ctx context.Context, path string) (*chart.Chart, error) {
	if !strings.HasSuffix(path, ".tgz") {
		return Build(ctx, path)
	}

	return openArchive(path)
}

// openArchive reads a chart archive.
func openArchive(path string) (*chart.Chart, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()

	c, err := chart.Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}

	return c, nil
}

// Build builds the chart of a provider's folder, or of a version folder in it.
func Build(ctx context.Context, path string) (*chart.Chart, error) {
	f, err := openFolder(ctx, path)
	if err != nil {
		return nil, err
	}

	p, err := f.parse(ctx)
	if err != nil {
		return nil, err
	}

	return p.build()
}

// versionFolder is the folder of one version of a provider.
type versionFolder struct {
	path      string
	directory *source.Directory
	release   source.Version
}

// parsedFolder is the content of a version folder.
type parsedFolder struct {
	*versionFolder
	bundle     *bundle.Bundle
	components *bundle.Components
}

// parse reads and parses the files of the folder.
func (f *versionFolder) parse(ctx context.Context) (*parsedFolder, error) {
	b, err := f.directory.Fetch(ctx, f.release)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.path, err)
	}

	components, err := bundle.ParseComponents(b.Components)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.path, err)
	}

	return &parsedFolder{versionFolder: f, bundle: b, components: components}, nil
}

// build builds the chart of the folder.
func (p *parsedFolder) build() (*chart.Chart, error) {
	built, err := chartgen.BuildParsed(p.bundle, p.components)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.path, err)
	}

	return built, nil
}

// openFolder opens a version folder, or that of the newest version in a provider's folder.
func openFolder(ctx context.Context, path string) (*versionFolder, error) {
	path = filepath.Clean(path)
	version := ""

	if base := filepath.Base(path); ranges.IsExact(base) {
		path = filepath.Dir(path)
		version = base
	}

	directory, err := source.NewDirectory(path)
	if err != nil {
		return nil, err
	}

	releases, err := directory.Versions(ctx)
	if err != nil {
		return nil, err
	}

	release, err := source.Pick(releases, version, "")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}

	return &versionFolder{
		path:      filepath.Join(path, release.Name),
		directory: directory,
		release:   release,
	}, nil
}

// destination returns the file to write a chart to: destination itself, or a file with the chart's
// usual name if it is a folder, which is created.
func destination(c *chart.Chart, destination string) (string, error) {
	info, err := os.Stat(destination)
	isFolder := err == nil && info.IsDir() || strings.HasSuffix(destination, "/")

	if !isFolder {
		return destination, nil
	}

	return filepath.Join(destination, c.Filename()), os.MkdirAll(destination, 0o755)
}
