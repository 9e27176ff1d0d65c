// Package render renders a provider's chart as Helm does, but without a cluster. It shows in advance
// which objects and images the chart results in, and how large its Helm release is.
package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/helm"
)

const (
	// maxRendered limits the values of all expressions in bytes. Helm can store 1 MiB of objects, compressed.
	maxRendered = 4 << 20
	// smallValues are so short that the objects stay small, whatever the values contain. Those of real providers are.
	smallValues = 4 << 10
)

// Result is a rendered chart, as Helm records it.
type Result struct {
	// Manifest has the objects in the order of installation.
	Manifest string
	Notes    string
	// Chart is the chart as it is recorded with the release: without templates and files.
	Chart *helm.Chart
}

// rendering is locked while a chart is rendered, which takes a bounded amount of memory and time: charts that are as
// large as they may be are rendered one after the other.
var rendering sync.Mutex

// Render renders a chart that chartgen has built. Its errors may quote values.
func Render(c *chart.Chart, values map[string]any, options helm.ReleaseOptions) (*Result, error) {
	if err := checkVariables(c, values); err != nil {
		return nil, err
	}

	if err := checkDeployments(c, values); err != nil {
		return nil, err
	}

	loaded, err := load(c)
	if err != nil {
		return nil, err
	}

	files, err := execute(loaded, values, options)
	if err != nil {
		return nil, err
	}

	manifest, notes, err := helm.Manifest(c.Metadata.Name, files)

	return &Result{Manifest: manifest, Notes: notes, Chart: recorded(loaded)}, err
}

// recorded returns a chart as it is recorded with a release of the operator.
func recorded(c *helm.Chart) *helm.Chart {
	return &helm.Chart{Metadata: c.Metadata, Values: c.Values, Schema: c.Schema}
}

// execute renders the templates. A panic of Helm's library is an error of the chart.
func execute(c *helm.Chart, values map[string]any, options helm.ReleaseOptions) (files map[string]string, err error) {
	rendering.Lock()
	defer rendering.Unlock()

	defer func() {
		if recover() != nil {
			err = errors.New("rendering panics with this chart and these values")
		}
	}()

	return helm.Render(c, values, options)
}

// checkVariables returns an error if the values of variables are too large, or no text.
func checkVariables(c *chart.Chart, values map[string]any) error {
	variables, _ := values["variables"].(map[string]any)
	for name, value := range variables {
		if text, isText := value.(string); isText && !utf8.ValidString(text) {
			return fmt.Errorf("the value of variable %s is not valid UTF-8; encode it in base64", name)
		}
	}

	texts := map[string]string{}
	size := 0

	for name, uses := range chartgen.VariableUses(c) {
		value, isSet := variables[name]
		if !isSet || value == nil {
			continue
		}

		texts[name] = fmt.Sprint(value)
		if size += uses * len(texts[name]); size > maxRendered {
			return fmt.Errorf("the values of variables up to %s are larger than %d MiB where they are used; shorten them",
				name, maxRendered>>20)
		}
	}

	if size <= smallValues {
		return nil
	}

	return chartgen.CheckWritten(c, texts)
}

// checkDeployments returns an error if the changes of Deployments are too large.
func checkDeployments(c *chart.Chart, values map[string]any) error {
	deployments, _ := values["deployments"].(map[string]any)
	if len(deployments) == 0 {
		return nil
	}

	size := 0

	for name, uses := range chartgen.DeploymentUses(c) {
		settings, err := json.Marshal(deployments[name])
		if err != nil {
			return fmt.Errorf("the value deployments.%s is not JSON: %w", name, err)
		}

		if size += uses * len(settings); size > maxRendered {
			return fmt.Errorf("the changes of Deployments up to %s are larger than %d MiB where they are used; shorten them",
				name, maxRendered>>20)
		}
	}

	return nil
}

// Manifest renders the chart's objects for a namespace, in the order of installation. It validates the values against
// the chart's schema. Required variables that are not set get a placeholder.
func Manifest(c *chart.Chart, namespace string, values map[string]any) (string, error) {
	completed, err := complete(c, values)
	if err != nil {
		return "", err
	}

	rendered, err := Render(c, completed,
		helm.ReleaseOptions{Name: c.Metadata.Name, Namespace: namespace, Revision: 1, IsInstall: true})
	if err != nil {
		return "", fmt.Errorf("render chart %s: %w", c.Metadata.Name, err)
	}

	return rendered.Manifest, nil
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

// load converts the chart to what Helm loads from its archive, without its CRDs.
func load(c *chart.Chart) (*helm.Chart, error) {
	files := make([]*helm.BufferedFile, 0, len(c.Files))
	for _, f := range c.Files {
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
