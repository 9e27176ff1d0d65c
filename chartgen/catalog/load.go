package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Load reads a configuration file.
func Load(file string) (*Catalog, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("configuration file %s cannot be read: %w; correct its path or its permissions", file,
			errors.Unwrap(err))
	}

	c, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("configuration file %s: %w; write it in the format of clusterctl's configuration", file, err)
	}

	return c, nil
}

// LoadUser reads a configuration file, or the current user's clusterctl configuration if its name is empty. Without
// one, it returns clusterctl's built-in list.
func LoadUser(file string) (*Catalog, error) {
	if file = cmp.Or(file, UserFile()); file != "" {
		return Load(file)
	}

	return Parse(nil)
}

// UserFile returns the path of the user's configuration file; empty if there is none.
func UserFile() string {
	for _, folder := range userFolders() {
		for _, extension := range []string{"yaml", "yml", "json"} {
			file := filepath.Join(folder, "clusterctl."+extension)
			if _, err := os.Stat(file); err == nil {
				return file
			}
		}
	}

	return ""
}

// userFolders returns the folders in which clusterctl looks for the user's configuration, in order.
func userFolders() []string {
	var folders []string

	if folder, err := os.UserConfigDir(); err == nil {
		folders = append(folders, filepath.Join(folder, "cluster-api"))
	}

	if home, err := os.UserHomeDir(); err == nil {
		folders = append(folders, filepath.Join(home, ".cluster-api"))
	}

	return folders
}
