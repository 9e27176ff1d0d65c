package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/Masterminds/semver/v3"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/limit"
	"github.com/capstan-project/capstan/chartgen/supply/ranges"
)

// Directory is the folder of a provider in clusterctl's local-repository layout:
// <label>/<version>/{<type>-components.yaml, metadata.yaml, cluster-template*.yaml,
// clusterclass-*.yaml}.
type Directory struct {
	path     string
	provider bundle.Provider
	// components is the name of the file with the components; empty if it follows from the provider.
	components string
	// defaultVersion is the version in the address of the components; empty for none.
	defaultVersion string
}

// NewDirectory returns the source of a folder whose name is the label of the provider, for example
// infrastructure-aws.
func NewDirectory(path string) (*Directory, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}

	return NewFolder(path, Provider(v1alpha2.ParseLabel(filepath.Base(abs)))), nil
}

// NewFolder returns the source of a folder with versions of a provider, whatever its name is.
func NewFolder(path string, provider bundle.Provider) *Directory {
	return &Directory{path: path, provider: provider}
}

// NewComponentsFile returns the source of a provider by the path of the components of one of its versions,
// in the layout of a Directory with any file name: <label>/<version>/<file>.
func NewComponentsFile(path string, provider bundle.Provider) *Directory {
	folder, file := filepath.Split(path)
	folder, version := filepath.Split(filepath.Clean(folder))
	d := &Directory{path: filepath.Clean(folder), provider: provider, components: file}

	if ranges.IsExact(version) {
		d.defaultVersion = version
	}

	return d
}

// DefaultVersion returns the version in the address of the components; empty if there is none.
func (d *Directory) DefaultVersion() string { return d.defaultVersion }

// Components returns the name of the file with the provider's components among the files of a version;
// empty if there is none. The error says which files could be meant, or are missing.
func (d *Directory) Components(names []string) (string, error) {
	switch {
	case d.components == "":
		return chooseComponents(d.provider, names)
	case slices.Contains(names, d.components):
		return d.components, nil
	default:
		return "", fmt.Errorf("has no file %s, which the address of the provider names", d.components)
	}
}

// Provider returns the identity that a provider of the API has in bundles and charts.
func Provider(t v1alpha2.ProviderType, name string) bundle.Provider {
	return bundle.Provider{Type: string(t), Name: name, Label: t.Label(name)}
}

// Versions lists the folders whose names are versions. The fingerprints are hashes of the names,
// sizes and modification times of the files.
func (d *Directory) Versions(context.Context) ([]Version, error) {
	entries, err := os.ReadDir(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &NotFoundError{Message: fmt.Sprintf("folder %s does not exist; correct its path", d.path)}
	}

	if err != nil {
		return nil, err
	}

	var versions []Version

	for _, e := range entries {
		// As for clusterctl, v01.0.0 is no version.
		if _, err := semver.StrictNewVersion(withoutV(e.Name())); !e.IsDir() || err != nil {
			continue
		}

		version := Version{
			Name:        withV(e.Name()),
			ID:          e.Name(),
			Fingerprint: fingerprint(filepath.Join(d.path, e.Name())),
		}

		same := func(other Version) bool { return other.Name == version.Name }
		if i := slices.IndexFunc(versions, same); i >= 0 {
			return nil, &NotFoundError{Message: fmt.Sprintf(
				"folders %s and %s in %s are the same version; delete one", versions[i].ID, version.ID, d.path)}
		}

		versions = append(versions, version)
	}

	if len(versions) == 0 {
		return nil, &NotFoundError{Message: fmt.Sprintf("folder %s holds no version folder such as v1.0.0", d.path)}
	}

	sortNewestFirst(versions)

	return versions, nil
}

// Fetch reads the folder of a version. Its files may be links to others in the folder, as in a mounted ConfigMap, but
// not to files elsewhere: who fills the folder may not read all that the operator reads.
func (d *Directory) Fetch(_ context.Context, version Version) (*bundle.Bundle, error) {
	path := filepath.Join(d.path, version.ID)
	b := &bundle.Bundle{Provider: d.provider, Version: version.Name, Source: "directory"}

	root, err := os.OpenRoot(path)
	if errors.Is(err, fs.ErrNotExist) {
		return b, &NotFoundError{Message: fmt.Sprintf("folder %s does not exist; correct the version or the path", path)}
	} else if err != nil {
		return nil, err
	}
	defer root.Close()

	folder := root.FS()

	names, err := fs.Glob(folder, "*.yaml")
	if err != nil {
		return nil, err
	}

	slices.Sort(names)

	components, err := d.Components(names)
	if err != nil {
		return b, &bundle.InvalidError{File: path, Reason: err.Error()}
	}

	for _, name := range names {
		data, err := readFile(folder, name)
		if err != nil {
			return nil, fmt.Errorf("folder %s: %w", path, err)
		}

		switch {
		case name == bundle.MetadataFile:
			b.Metadata = data
		case name == components:
			b.Components = data
		case isTemplate(d.provider, name):
			b.Templates = append(b.Templates, bundle.File{Name: name, Data: data})
		}

		if err := checkTemplates(b.Templates); err != nil {
			return nil, err
		}
	}

	return b, requireFiles(path, b)
}

// fingerprint returns a hash of the names, sizes and modification times of the files in a folder. It
// is empty if the folder cannot be read; Fetch then returns the error.
func fingerprint(folder string) string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return ""
	}

	h := sha256.New()

	for _, e := range entries {
		// os.Stat follows links, unlike e.Info: the target of a link may change
		info, err := os.Stat(filepath.Join(folder, e.Name()))
		if err != nil {
			return ""
		}

		fmt.Fprintln(h, e.Name(), info.Size(), info.ModTime().UnixNano())
	}

	return hex.EncodeToString(h.Sum(nil))
}

// requireFiles returns a *bundle.InvalidError if components or metadata are missing.
func requireFiles(folder string, b *bundle.Bundle) error {
	if b.Components == nil {
		return &bundle.InvalidError{File: folder, Reason: fmt.Sprintf(
			"has no *-%s; add that of %s, or choose another version", bundle.ComponentsFile, b.Version)}
	}

	if b.Metadata == nil {
		return &bundle.InvalidError{File: folder, Reason: fmt.Sprintf(
			"has no %s, which maps versions to Cluster API contracts; add that of %s, or choose another version",
			bundle.MetadataFile, b.Version)}
	}

	return nil
}

// readFile reads a file of a provider, which has at most limit.MaxText bytes: five times the largest
// components of a real one.
func readFile(folder fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(folder, name)
	if err != nil {
		return nil, err
	}

	if info.Size() > limit.MaxText {
		return nil, fmt.Errorf("%s is larger than %d MiB, which no provider's file is", name, limit.MaxText>>20)
	}

	return fs.ReadFile(folder, name)
}
