// Command generate makes what follows from charts/capstan: the chart's README, from the comments in values.yaml, and the kustomize base in
// config/default with the optional monitoring beside it, from the templates. `make manifests` runs it in the module's folder.
package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
)

const folder = "charts/capstan"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run() error {
	capstan, err := load(folder)
	if err != nil {
		return err
	}
	readme, err := readme(folder, capstan)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "README.md"), readme, 0o644); err != nil {
		return err
	}
	for file, part := range map[string]struct {
		values map[string]any
		keep   func(template string) bool
	}{
		"config/default/operator.yaml":      {nil, func(string) bool { return true }},
		"config/monitoring/monitoring.yaml": {monitoring, monitors},
	} {
		manifest, err := render(capstan, part.values, part.keep)
		if err != nil {
			return err
		}
		if err := os.WriteFile(file, manifest, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// load reads the chart without its CRDs, which are a symbolic link that Helm would warn of, and which kustomize takes from config/crd.
func load(folder string) (*chart.Chart, error) {
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
