package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/ranges"
	"github.com/capstan-project/capstan/chartgen/transport"
)

// directory is the path of a provider's folder in clusterctl's local-repository layout:
// <label>/<version>/{<type>-components.yaml, metadata.yaml, cluster-template*.yaml, clusterclass-*.yaml}.
type directory string

// NewDirectory returns the source of a folder whose name is the label of the provider, for example
// infrastructure-aws.
func NewDirectory(path string) (*Source, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}

	return NewFolder(path, Provider(v1alpha2.ParseLabel(filepath.Base(abs)))), nil
}

// NewFolder returns the source of a folder with versions of a provider, whatever its name is.
func NewFolder(path string, provider bundle.Provider) *Source {
	return &Source{Place: directory(path), Provider: provider, Kind: "directory", local: true}
}

// NewComponentsFile returns the source of a provider by the path of the components of one of its versions,
// in the same layout with any file name: <label>/<version>/<file>.
func NewComponentsFile(path string, provider bundle.Provider) *Source {
	folder, file := filepath.Split(path)
	folder, version := filepath.Split(filepath.Clean(folder))

	s := NewFolder(filepath.Clean(folder), provider)
	s.components = file

	if ranges.IsExact(version) {
		s.Default = version
	}

	return s
}

// Versions lists the folders whose names are versions. The fingerprints are hashes of the names,
// sizes and modification times of the files.
func (d directory) Versions(context.Context) ([]Version, error) {
	entries, err := os.ReadDir(string(d))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, notFound("folder "+string(d)+" does not exist", "correct its path")
	}

	if err != nil {
		return nil, err
	}

	var versions []Version

	folders := map[string]string{} // by version

	for _, e := range entries {
		if !e.IsDir() || !isComplete(e.Name()) {
			continue
		}

		version := Version{
			Name:        withV(e.Name()),
			ID:          e.Name(),
			Fingerprint: fingerprint(filepath.Join(string(d), e.Name())),
		}

		if other, taken := folders[version.Name]; taken {
			return nil, notFound(
				fmt.Sprintf("folders %s and %s in %s are the same version", other, version.ID, d), "delete one")
		}

		folders[version.Name] = version.ID
		versions = append(versions, version)
	}

	if len(versions) == 0 {
		return nil, notFound("folder "+string(d)+" holds no version folder such as v1.0.0", "")
	}

	sortNewestFirst(versions)

	return versions, nil
}

func notFound(problem, fix string) error {
	return &transport.Error{Kind: transport.NotFound, Problem: problem, Fix: fix}
}

// Files finds the files in the folder of a version. They may be links to others in the folder, as in a mounted
// ConfigMap, but not to files elsewhere: who fills the folder may not read all that the operator reads.
func (d directory) Files(ctx context.Context, version Version) (*Files, error) {
	path := filepath.Join(string(d), version.ID)

	root, err := os.OpenRoot(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, notFound("folder "+path+" does not exist", "correct the version or the path")
	}

	if err != nil {
		return nil, err
	}

	defer root.Close()

	names, err := fs.Glob(root.FS(), "*.yaml") // sorted
	if err != nil {
		return nil, err
	}

	files := &Files{Place: "folder " + path, Source: "directory", names: names}
	files.read = func(_ context.Context, name string, limit int64) ([]byte, error) {
		return readFile(path, name, limit)
	}

	if slices.Contains(names, bundle.MetadataFile) {
		files.Metadata, err = files.read(ctx, bundle.MetadataFile, maxMetadata)
	}

	return files, err
}

// readFile reads a file in a folder. Without waiting, a pipe opens at once, and is refused.
func readFile(folder, name string, limit int64) ([]byte, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()

	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("folder %s: %w", folder, err)
	}
	defer file.Close()

	info, err := file.Stat()

	switch {
	case err != nil:
		return nil, fmt.Errorf("folder %s: %w", folder, err)
	case !info.Mode().IsRegular():
		return nil, &transport.Error{
			Kind: transport.Invalid, Place: "folder " + folder, Problem: "its " + name + " is not a regular file",
		}
	}

	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, fmt.Errorf("folder %s: %w", folder, err)
	}

	return data, checkSize("folder "+folder, name, int64(len(data)), limit)
}

// fingerprint returns a hash of the names, sizes and modification times of the files in a folder. It
// is empty if the folder cannot be read; Files then returns the error.
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
