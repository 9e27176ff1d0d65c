package charts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/ranges"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// openArchive reads a chart archive.
func openArchive(path string) (*published, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, cli.FileError(err)
	}
	defer file.Close()

	c, err := chart.Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}

	return &published{place: path, chart: c}, nil
}

// openFolder reads the folder of a version, that of the newest version in a provider's folder, or any folder with the
// files of one version, such as the output of a release.
func openFolder(ctx context.Context, path string, id *identity) (*published, error) {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s is neither a folder nor the archive of a chart, whose name ends with .tgz; correct its "+
			"path", path)
	}

	path, err := named(path)
	if err != nil {
		return nil, err
	}

	var (
		parent  = filepath.Dir(path)
		release = source.Version{ID: filepath.Base(path)}
		label   bundle.Provider
	)

	if isRelease(path) && !ranges.IsExact(release.ID) {
		if id.version == "" {
			return nil, fmt.Errorf("%s: the name of the folder is no version; set --version", path)
		}

		release.Name = "v" + strings.TrimPrefix(id.version, "v")
	} else if parent, release, err = pickVersion(ctx, path, id.version); err == nil {
		label = labelOf(parent)
	}

	if err != nil {
		return nil, err
	}

	opened := &published{place: filepath.Join(parent, release.ID), isFolder: true}
	if opened.names, err = fileNames(opened.place); err != nil {
		return nil, err
	}

	provider, err := id.ofFolder(label, opened.names)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}

	fetched, err := source.NewFolder(parent, provider).Fetch(ctx, release)
	if err != nil {
		err = fmt.Errorf("%s: %w", opened.place, err)
	}

	if fetched == nil {
		return nil, err
	}

	opened.bundle = fetched.Bundle

	return opened, err
}

// named returns the path of a folder with its name, also for the working directory.
func named(path string) (string, error) {
	path = filepath.Clean(path)
	if base := filepath.Base(path); base == "." || base == ".." {
		return filepath.Abs(path)
	}

	return path, nil
}

// isRelease reports whether a folder itself has files that each version has.
func isRelease(path string) bool {
	names, err := fileNames(path)

	return err == nil && slices.ContainsFunc(names, func(name string) bool {
		return name == bundle.MetadataFile || strings.HasSuffix(name, bundle.ComponentsFile)
	})
}

// pickVersion selects a version in a provider's folder, and returns the folder with it: the version that the path ends
// with, the wanted one, or the newest.
func pickVersion(ctx context.Context, path, wanted string) (string, source.Version, error) {
	if base := filepath.Base(path); ranges.IsExact(base) {
		if wanted != "" && !ranges.IsSame(wanted, base) {
			return "", source.Version{}, fmt.Errorf("%s is not version %s; leave out --version, or correct it", path, wanted)
		}

		path, wanted = filepath.Dir(path), base
	}

	directory, err := source.NewDirectory(path)
	if err != nil {
		return "", source.Version{}, err
	}

	versions, err := directory.Versions(ctx)
	if err != nil {
		return "", source.Version{}, err
	}

	picked, err := source.Pick(versions, wanted, "")
	if err != nil {
		return "", source.Version{}, fmt.Errorf("%s: %w", path, err)
	}

	return path, picked, nil
}

// destination returns the file to write a chart to: destination itself if it is an archive, or a file with the chart's
// usual name in that folder. Folders are created.
func destination(c *chart.Chart, destination string) (string, error) {
	if !isArchive(destination) {
		destination = filepath.Join(destination, c.Filename())
	}

	return destination, os.MkdirAll(filepath.Dir(destination), 0o755)
}

// isArchive reports whether a destination is the archive of a chart, not a folder for charts.
func isArchive(destination string) bool {
	info, err := os.Stat(destination)
	isFolder := err == nil && info.IsDir()

	return strings.HasSuffix(destination, ".tgz") && !isFolder
}
