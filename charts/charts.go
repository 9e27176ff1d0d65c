// Package charts loads the operator's chart, charts/capstan, and its CRDs.
package charts

import (
	"embed"
	"fmt"
	"io/fs"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
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

// CRDs returns the CustomResourceDefinitions in the operator's chart, sorted by name.
func CRDs() ([]*unstructured.Unstructured, error) {
	chart, err := Operator()
	if err != nil {
		return nil, err
	}

	var definitions []*unstructured.Unstructured

	for _, file := range chart.CRDObjects() {
		definition := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(file.File.Data, &definition.Object); err != nil {
			return nil, fmt.Errorf("read %s: %w", file.Name, err)
		}

		definitions = append(definitions, definition)
	}

	return definitions, nil
}
