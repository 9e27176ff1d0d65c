package clustertemplate

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/supply/ranges"
	"github.com/capstan-project/capstan/chartgen/supply/source"
)

// FromChart returns the templates in a chart. Charts of other providers or versions than wanted are an
// error.
func FromChart(c *chart.Chart, want Infrastructure) (*Set, error) {
	s := &Set{Provider: c.Metadata.Name, Version: c.Metadata.AppVersion, Unlisted: chartgen.HasUnlistedTemplates(c)}
	if err := want.check(s); err != nil {
		return nil, err
	}

	for _, f := range c.Files {
		if bundle.IsTemplate(f.Name) {
			s.Files = append(s.Files, bundle.File{Name: f.Name, Data: f.Data})
		}
	}

	return s, nil
}

// FromArchive returns the templates in the .tgz of a chart.
func FromArchive(path string, want Infrastructure) (*Set, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()

	c, err := chart.Read(file)
	if err != nil {
		return nil, fmt.Errorf("file %s: %w; give a provider's chart, for example infrastructure-aws-2.11.1.tgz", path, err)
	}

	s, err := FromChart(c, want)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", path, err)
	}

	return s, nil
}

// FromFolder returns the templates in a folder with clusterctl's local-repository layout,
// <repository>/infrastructure-aws/v2.11.1. The path is that of the repository, of a provider or of a
// version. If neither path nor want determine the version, it is the newest. Components and metadata
// are not needed.
func FromFolder(ctx context.Context, path string, want Infrastructure) (*Set, error) {
	folder, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}

	requested := want.Version

	if base := filepath.Base(folder); ranges.IsExact(base) {
		requested = base
		folder = filepath.Dir(folder)
	} else {
		folder, err = providerFolder(folder, want)
		if err != nil {
			return nil, err
		}
	}

	directory, err := source.NewDirectory(folder)
	if err != nil {
		return nil, err
	}

	versions, err := directory.Versions(ctx)
	if err != nil {
		return nil, err
	}

	picked, err := source.Pick(versions, requested, "")
	if err != nil {
		return nil, fmt.Errorf("folder %s: %w", folder, err)
	}

	s := &Set{Provider: filepath.Base(folder), Version: picked.Name}
	if err := want.check(s); err != nil {
		return nil, err
	}

	s.Files, err = readTemplates(filepath.Join(folder, picked.ID))
	if err != nil {
		return nil, err
	}

	return s, nil
}

// providerFolder returns the folder of the selected provider in a local repository. If the path is
// that of a provider already, it is returned as it is.
func providerFolder(path string, want Infrastructure) (string, error) {
	if kind, _ := v1alpha2.ParseLabel(filepath.Base(path)); kind == v1alpha2.InfrastructureProviderType {
		return path, nil
	}

	folders, err := filepath.Glob(filepath.Join(path, v1alpha2.InfrastructureProviderType.Label("*")))
	if err != nil {
		return "", err
	}

	names := make([]string, len(folders))
	for i, f := range folders {
		_, names[i] = v1alpha2.ParseLabel(filepath.Base(f))
		if names[i] == want.Name || want.Name == "" && len(folders) == 1 {
			return f, nil
		}
	}

	switch {
	case len(names) == 0:
		return "", &source.NotFoundError{
			Message: fmt.Sprintf(
				"folder %s holds no infrastructure provider; "+
					"give a folder with one such as infrastructure-aws/v2.11.1, or one of these",
				path,
			),
		}
	case want.Name == "":
		return "", &source.NotFoundError{
			Message: fmt.Sprintf(
				"folder %s holds several infrastructure providers; choose one: %s",
				path,
				strings.Join(names, ", "),
			),
		}
	default:
		return "", &source.NotFoundError{
			Message: fmt.Sprintf(
				"folder %s holds no infrastructure provider %s; there is %s",
				path,
				want.Name,
				strings.Join(names, ", "),
			),
		}
	}
}

// readTemplates reads the templates and classes in a folder.
func readTemplates(path string) ([]bundle.File, error) {
	folder := os.DirFS(path)

	names, err := fs.Glob(folder, "*"+suffix)
	if err != nil {
		return nil, err
	}

	var files []bundle.File

	for _, name := range names {
		if !bundle.IsTemplate(name) {
			continue
		}

		data, err := fs.ReadFile(folder, name)
		if err != nil {
			return nil, fmt.Errorf("folder %s: %w", path, err)
		}

		files = append(files, bundle.File{Name: name, Data: data})
	}

	return files, nil
}
