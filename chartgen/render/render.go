// Package render renders a provider's chart as Helm does, but without a cluster. It shows in advance
// which objects and images the chart results in, and how large its Helm release is.
package render

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/helm"
)

// Manifest renders the chart's templates except NOTES.txt for a namespace, sorted by file name. It
// validates the values against the chart's schema. Required variables that are not set get a
// placeholder.
func Manifest(c *chart.Chart, namespace string, values map[string]any) (string, error) {
	loaded, err := load(c)
	if err != nil {
		return "", err
	}

	return manifest(c, loaded, namespace, values)
}

func manifest(c *chart.Chart, loaded *helm.Chart, namespace string, values map[string]any) (string, error) {
	completed, err := complete(c, values)
	if err != nil {
		return "", err
	}

	options := helm.ReleaseOptions{Name: c.Metadata.Name, Namespace: namespace, Revision: 1, IsInstall: true}

	files, err := helm.Render(loaded, completed, options)
	if err != nil {
		return "", fmt.Errorf("render chart %s: %w", c.Metadata.Name, err)
	}

	var out strings.Builder

	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, ".yaml") && strings.TrimSpace(files[name]) != "" {
			fmt.Fprintf(&out, "---\n# Source: %s\n%s\n", name, files[name])
		}
	}

	return out.String(), nil
}

// Images returns the images of all workloads that the chart renders, sorted.
func Images(c *chart.Chart) ([]string, error) {
	text, err := Manifest(c, "default", nil)
	if err != nil {
		return nil, err
	}

	var images []string

	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)

	for {
		var object map[string]any

		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			break
		}

		if err != nil {
			return nil, fmt.Errorf("chart %s: %w", c.Metadata.Name, err)
		}

		images = append(images, bundle.Images(object)...)
	}

	slices.Sort(images)

	return slices.Compact(images), nil
}

// load converts the chart to what Helm loads from its archive.
func load(c *chart.Chart) (*helm.Chart, error) {
	files := make([]*helm.BufferedFile, 0, len(c.Files)+len(c.CRDs))
	for _, f := range slices.Concat(c.Files, c.CRDs) {
		files = append(files, &helm.BufferedFile{Name: f.Name, Data: f.Data})
	}

	loaded, err := helm.Load(files)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", c.Metadata.Name, err)
	}

	return loaded, nil
}

// complete returns the values with a placeholder for each required variable that is not set.
func complete(c *chart.Chart, values map[string]any) (map[string]any, error) {
	required, _, err := chartgen.RequiredVariables(c)
	if err != nil {
		return nil, err
	}

	variables := map[string]any{}
	for _, name := range required {
		variables[name] = bundle.Placeholder
	}

	given, _ := values["variables"].(map[string]any)
	maps.Copy(variables, given)

	completed := map[string]any{}
	maps.Copy(completed, values)
	completed["variables"] = variables

	return completed, nil
}
