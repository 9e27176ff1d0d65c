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
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
)

// maxFileSize bounds each file that is read: ten times the largest components of a real provider.
const maxFileSize = 32 << 20

// Directory is a provider's folder in clusterctl's local-repository layout:
// <label>/<version>/{<type>-components.yaml, metadata.yaml, cluster-template*.yaml,
// clusterclass-*.yaml}.
type Directory struct {
	path     string
	provider bundle.Provider
}

// NewDirectory opens the folder of a provider; the folder's name is the provider's label, for
// example infrastructure-aws.
func NewDirectory(path string) (*Directory, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}

	return &Directory{path: path, provider: Provider(v1alpha2.ParseLabel(filepath.Base(abs)))}, nil
}

// Provider is the bundle's identity of a provider of the API.
func Provider(t v1alpha2.ProviderType, name string) bundle.Provider {
	return bundle.Provider{Type: string(t), Name: name, Label: t.Label(name)}
}

// Releases lists the version folders. Their fingerprints are made of the names, sizes and times of
// the files.
func (d *Directory) Versions(context.Context) ([]Version, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, err
	}

	var releases []Version

	for _, e := range entries {
		if _, err := semver.NewVersion(e.Name()); err == nil && e.IsDir() {
			releases = append(
				releases,
				Version{Name: e.Name(), ID: e.Name(), Fingerprint: fingerprint(filepath.Join(d.path, e.Name()))},
			)
		}
	}

	if len(releases) == 0 {
		return nil, &NotFoundError{Message: fmt.Sprintf("folder %s holds no version folder such as v1.0.0", d.path)}
	}

	sortNewestFirst(releases)

	return releases, nil
}

// Fetch reads a version folder.
func (d *Directory) Fetch(_ context.Context, release Version) (*bundle.Bundle, error) {
	folder := os.DirFS(filepath.Join(d.path, release.ID))
	b := &bundle.Bundle{Provider: d.provider, Version: release.Name, Source: "directory"}

	names, err := fs.Glob(folder, "*.yaml")
	if err != nil {
		return nil, err
	}

	slices.Sort(names)

	for _, name := range names {
		data, err := readFile(folder, name)
		if err != nil {
			return nil, fmt.Errorf("folder %s: %w", filepath.Join(d.path, release.ID), err)
		}

		switch {
		case name == bundle.MetadataFile:
			b.Metadata = data
		case strings.HasSuffix(name, bundle.ComponentsFile):
			b.Components = data
		case IsTemplateFile(name):
			b.Templates = append(b.Templates, bundle.File{Name: name, Data: data})
		}
	}

	return b, requireFiles(b)
}

// fingerprint is empty when the folder cannot be read, which Fetch then says.
func fingerprint(folder string) string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return ""
	}

	h := sha256.New()

	for _, e := range entries {
		// not the entry's: it may be a link to a file that changes
		info, err := os.Stat(filepath.Join(folder, e.Name()))
		if err != nil {
			return ""
		}

		fmt.Fprintln(h, e.Name(), info.Size(), info.ModTime().UnixNano())
	}

	return hex.EncodeToString(h.Sum(nil))
}

// requireFiles makes sure that a bundle is complete.
func requireFiles(b *bundle.Bundle) error {
	if b.Components == nil {
		return &bundle.InvalidError{File: "*-" + bundle.ComponentsFile, Reason: "missing beside " + bundle.MetadataFile}
	}

	if b.Metadata == nil {
		return &bundle.InvalidError{
			File:   bundle.MetadataFile,
			Reason: "missing beside the components; it maps versions to Cluster API contracts",
		}
	}

	return nil
}

func readFile(folder fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(folder, name)
	if err != nil {
		return nil, err
	}

	if info.Size() > maxFileSize {
		return nil, errors.New(name + " is larger than 32 MiB, which no provider's file is")
	}

	return fs.ReadFile(folder, name)
}
