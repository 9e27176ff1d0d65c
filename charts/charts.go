// Package charts loads and renders the operator's chart, charts/capstan, for generated files and `capstan init`.
package charts

import (
	"embed"
	"io/fs"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
)

//go:embed all:capstan
var embedded embed.FS

// Operator returns the operator's chart of this source tree.
func Operator() (*chart.Chart, error) {
	root, err := fs.Sub(embedded, "capstan")
	if err != nil {
		return nil, err
	}

	var files []*loader.BufferedFile

	err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
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
