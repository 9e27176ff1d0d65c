// Package charts loads and renders the operator's chart, charts/capstan, for generated files and
// releases.
package charts

import (
	"io/fs"
	"os"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
)

// Load reads a chart without its CRDs. They are behind a symbolic link, which Helm would warn about.
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
