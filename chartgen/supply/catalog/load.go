package catalog

import (
	"fmt"
	"os"
	"path/filepath"
)

// Load reads a configuration file.
func Load(file string) (*Catalog, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("configuration file: %w", err)
	}

	c, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("configuration file %s: %w; write it in the format of clusterctl's configuration", file, err)
	}

	return c, nil
}

// LoadUser reads the current user's clusterctl configuration. Without one, it returns clusterctl's built-in list.
func LoadUser() (*Catalog, error) {
	if file := UserFile(); file != "" {
		return Load(file)
	}

	return Parse(nil)
}

// UserFile returns the path of the user's configuration file; empty if there is none.
func UserFile() string {
	for _, folder := range UserFolders() {
		for _, extension := range []string{"yaml", "yml", "json"} {
			file := filepath.Join(folder, "clusterctl."+extension)
			if _, err := os.Stat(file); err == nil {
				return file
			}
		}
	}

	return ""
}

// UserFolders returns the folders in which clusterctl looks for the user's configuration, in order.
func UserFolders() []string {
	var folders []string

	if folder, err := os.UserConfigDir(); err == nil {
		folders = append(folders, filepath.Join(folder, "cluster-api"))
	}

	if home, err := os.UserHomeDir(); err == nil {
		folders = append(folders, filepath.Join(home, ".cluster-api"))
	}

	return folders
}
