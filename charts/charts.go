// Package charts loads and renders the operator's chart, charts/capstan, for generated files and `capstan init`.
package charts

import (
	"embed"
	"io/fs"
	"os"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/config/crd"
)

//go:embed all:capstan
var embedded embed.FS

// Operator returns the operator's chart of this source tree, with its CRDs.
func Operator() (*chart.Chart, error) {
	root, err := fs.Sub(embedded, "capstan")
	if err != nil {
		return nil, err
	}

	files, err := readFiles(root)
	if err != nil {
		return nil, err
	}

	definitions, err := crd.Bases()
	if err != nil {
		return nil, err
	}

	for _, d := range definitions {
		data, err := yaml.Marshal(d.Object)
		if err != nil {
			return nil, err
		}

		files = append(files, &loader.BufferedFile{Name: "crds/" + d.GetName() + ".yaml", Data: data})
	}

	return loader.LoadFiles(files)
}

// Load reads a chart without its CRDs. They are behind a symbolic link, which Helm would warn about.
func Load(folder string) (*chart.Chart, error) {
	files, err := readFiles(os.DirFS(folder))
	if err != nil {
		return nil, err
	}

	return loader.LoadFiles(files)
}

// readFiles reads all regular files of a chart.
func readFiles(root fs.FS) ([]*loader.BufferedFile, error) {
	var files []*loader.BufferedFile

	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}

		data, err := fs.ReadFile(root, name)
		files = append(files, &loader.BufferedFile{Name: name, Data: data})

		return err
	})

	return files, err
}
