package fetch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/capstan-project/capstan/chartgen/supply/catalog"
)

// DefaultConfigFile is the path of cluster-api-operator's configuration, which is also read if no
// file is configured.
const DefaultConfigFile = "/config/clusterctl.yaml"

// ConfigFile is the operator's configuration, in clusterctl's format: a file, or a ConfigMap
// mounted as one.
type ConfigFile struct {
	// Path is that of the file. Only the file at DefaultConfigFile need not exist.
	Path string

	mu       sync.Mutex
	modified time.Time // of the file that catalog was read from; zero without a file
	catalog  *catalog.Catalog
}

// Catalog returns the catalog of the configuration. If the file has changed since the last call, it
// is read again.
func (f *ConfigFile) Catalog() (*catalog.Catalog, error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	modified, err := f.lastModified()
	if err != nil {
		return nil, fmt.Errorf("the operator's configuration: %w", err)
	}

	if f.catalog != nil && modified.Equal(f.modified) {
		return f.catalog, nil
	}

	loaded, err := f.load(modified)
	if err != nil {
		return nil, err
	}

	f.catalog = loaded
	f.modified = modified

	return loaded, nil
}

// lastModified returns when the file was modified; zero if it does not exist and need not.
func (f *ConfigFile) lastModified() (time.Time, error) {
	info, err := os.Stat(f.Path)
	if errors.Is(err, fs.ErrNotExist) && f.Path == DefaultConfigFile {
		return time.Time{}, nil
	}

	if err != nil {
		return time.Time{}, err
	}

	return info.ModTime(), nil
}

func (f *ConfigFile) load(modified time.Time) (*catalog.Catalog, error) {
	if modified.IsZero() {
		return catalog.Parse(nil)
	}

	return catalog.Load(f.Path)
}
