package source

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// overridesFolder is the folder of a provider in the overrides layer of clusterctl's configuration: files on disk
// that replace those that the provider publishes, in a folder for each version. Its zero value has no files.
type overridesFolder struct{ path string }

// openOverrides returns the folder of the provider with a label in a layer; a layer without a path has no files.
func openOverrides(layer, label string) overridesFolder {
	if layer == "" {
		return overridesFolder{}
	}

	return overridesFolder{path: filepath.Join(layer, label)}
}

// version returns the files of a version, with a "v". Their folder has the name of the provider's tag,
// which may lack it.
func (f overridesFolder) version(name string) fs.FS {
	for _, folder := range []string{name, strings.TrimPrefix(name, "v")} {
		path := filepath.Join(f.path, folder)
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return os.DirFS(path)
		}
	}

	return nil
}

// read reads a file of a version. The error is fs.ErrNotExist if it is not overridden.
func (f overridesFolder) read(version, name string) ([]byte, error) {
	if f.path == "" {
		return nil, fs.ErrNotExist
	}

	files := f.version(version)
	if files == nil {
		return nil, fs.ErrNotExist
	}

	return readFile(files, name)
}

// digest returns a short hash of the files of a version; empty if nothing is overridden.
func (f overridesFolder) digest(version string) string {
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
		data, err := readFile(files, name)
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
