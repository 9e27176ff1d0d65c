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

// DefaultConfigFile is where cluster-api-operator has its configuration, and where it is taken up
// without being named.
const DefaultConfigFile = "/config/clusterctl.yaml"

// ConfigFile is the operator's configuration, in clusterctl's format: a file, or a ConfigMap
// mounted as one. A change is taken up when it is next looked at.
type ConfigFile struct {
	// Path of the file. The default one need not exist.
	Path string

	mu      sync.Mutex
	changed time.Time // of the file that the catalog was read from; zero when there was none
	catalog *catalog.Catalog
}

// Catalog is the catalog by the configuration as it is now.
func (f *ConfigFile) Catalog() (*catalog.Catalog, error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	var changed time.Time

	info, err := os.Stat(f.Path)
	switch {
	case err == nil:
		changed = info.ModTime()
	case f.Path != DefaultConfigFile || !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the operator's configuration: %w", err)
	}

	if f.catalog != nil && changed.Equal(f.changed) {
		return f.catalog, nil
	}

	var loaded *catalog.Catalog
	if changed.IsZero() {
		loaded, err = catalog.Parse(nil)
	} else {
		loaded, err = catalog.Load(f.Path)
	}

	if err != nil {
		return nil, err
	}

	f.catalog, f.changed = loaded, changed

	return loaded, nil
}
