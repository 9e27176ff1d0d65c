// Package charts reads and renders charts/capstan, for what is generated from it and for releases.
package charts

import (
	"io/fs"
	"os"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
)

// Load reads a chart without its CRDs, which are a symbolic link that Helm would warn of, and which
// are in config/crd as well.
func Load(folder string) (*chart.Chart, error) {
	var files []*loader.BufferedFile

	root := os.DirFS(folder)

	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}

		data, err := fs.ReadFile(root, name)
		files = append(files, &loader.BufferedFile{Name: name, Data: data})

		return err
	})
	if err != nil {
		return nil, err
	}

	return loader.LoadFiles(files)
}
