// Package overrides reads the overrides layer of clusterctl's configuration: files on disk that replace
// those that a provider publishes, in a folder for each provider and version.
package overrides

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/capstan-project/capstan/chartgen/limit"
)

// Folder is the folder of a provider in the overrides layer. Its zero value has no files.
type Folder struct{ path string }

// Open returns the folder of the provider with a label in a layer; a layer without a path has no files.
func Open(layer, label string) Folder {
	if layer == "" {
		return Folder{}
	}

	return Folder{path: filepath.Join(layer, label)}
}

// version returns the files of a version, with a "v". Their folder has the name of the provider's tag,
// which may lack it.
func (f Folder) version(name string) fs.FS {
	for _, folder := range []string{name, strings.TrimPrefix(name, "v")} {
		path := filepath.Join(f.path, folder)
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return os.DirFS(path)
		}
	}

	return nil
}

// Read reads a file of a version. The error is fs.ErrNotExist if it is not overridden.
func (f Folder) Read(version, name string) ([]byte, error) {
	if f.path == "" {
		return nil, fs.ErrNotExist
	}

	files := f.version(version)
	if files == nil {
		return nil, fs.ErrNotExist
	}

	return limit.ReadFile(files, name)
}

// Digest returns a short hash of the files of a version; empty if nothing is overridden.
func (f Folder) Digest(version string) string {
	if f.path == "" {
		return ""
	}

	files := f.version(version)
	if files == nil {
		return ""
	}

	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return ""
	}

	h := sha256.New()
	found := false

	for _, name := range names {
		data, err := limit.ReadFile(files, name)
		if err != nil {
			continue
		}

		found = true

		fmt.Fprintf(h, "%s %d\n", name, len(data))
		h.Write(data)
	}

	if !found {
		return ""
	}

	const digestBytes = 6

	return hex.EncodeToString(h.Sum(nil)[:digestBytes])
}
