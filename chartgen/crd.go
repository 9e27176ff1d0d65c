package chartgen

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	yamlv2 "go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/limit"
)

// crd is a CRD of a provider, and its file, which is named after it.
type crd struct {
	file   chart.File
	object map[string]any
}

// newCRDs returns the CRDs in components as clusterctl applies them: with its labels, and with the defaults of
// variables. Helm does not render the files in crds/, so a required variable is an error.
func newCRDs(components *bundle.Components, label string) ([]crd, error) {
	var crds []crd

	for i := range components.Documents {
		doc := &components.Documents[i]
		if !doc.IsCRD() {
			continue
		}

		for _, v := range doc.Text.Variables() {
			if v.Required {
				return nil, invalid(doc, fmt.Errorf("it uses the variable %s, which has no default; Helm does not render CRDs, "+
					"so give the variable a default", v.Name))
			}
		}

		reference, found := doc.Object.GetAnnotations()[v1alpha2.InjectCAAnnotation]
		if found && strings.Count(reference, "/") != 1 {
			return nil, invalid(doc, fmt.Errorf(
				"the annotation %s is %q, expected namespace/name", v1alpha2.InjectCAAnnotation, reference))
		}

		added, err := newCRD(doc.Object, label)
		if err != nil {
			return nil, invalid(doc, err)
		}

		crds = appendCRD(crds, added)
	}

	return crds, nil
}

// readCRDs returns the CRDs in the files of a chart that another program may have written.
func readCRDs(files []chart.File, label string) ([]crd, error) {
	var crds []crd

	for _, f := range files {
		object, err := readObject(f.Data)
		if err == nil && !(&bundle.Document{Object: object}).IsCRD() {
			err = errors.New("it is no CustomResourceDefinition")
		}

		var added crd
		if err == nil {
			added, err = newCRD(object, label)
		}

		if err != nil {
			return nil, &bundle.InvalidError{File: f.Name, Reason: err.Error(), Err: err}
		}

		crds = appendCRD(crds, added)
	}

	return crds, nil
}

// newCRD labels a CRD and returns it with its file, which can be created. The file keeps its content as JSON: the
// operator needs it as soon as the chart is built.
func newCRD(object *unstructured.Unstructured, label string) (crd, error) {
	bundle.RemoveServerFields(object)

	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}

	labels[v1alpha2.ClusterctlLabel] = ""
	labels[v1alpha2.ClusterctlProviderLabel] = label
	object.SetLabels(labels)

	content, err := json.Marshal(object.Object)
	if err != nil {
		return crd{}, err
	}

	// The library that sigs.k8s.io/yaml consists of. That one would parse the JSON as YAML first.
	data, err := yamlv2.Marshal(object.Object)
	if err != nil {
		return crd{}, err
	}

	// It is in memory for long, and the library's buffer may be twice as large.
	file := chart.File{Name: crdsFolder + object.GetName() + ".yaml", Data: bytes.Clone(data)}

	return crd{file.WithJSON(content), object.Object}, nil
}

// appendCRD adds a CRD. Of definitions with the same name, the last one counts: clusterctl applies all of them.
func appendCRD(crds []crd, added crd) []crd {
	crds = slices.DeleteFunc(crds, func(c crd) bool { return c.file.Name == added.file.Name })

	return append(crds, added)
}

// readObject parses an object and keeps large integers exact.
func readObject(text []byte) (*unstructured.Unstructured, error) {
	data, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, err
	}

	object := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(data, &object.Object); err != nil {
		return nil, err
	}

	return object, limit.Depth(object.Object)
}

// JoinCRDs joins the CRDs of a chart into one file for kubectl apply --server-side. If a namespace
// is given, conversion webhooks and certificates are taken from there, otherwise from the
// provider's default namespace, to which the chart's CRDs refer.
func JoinCRDs(c *chart.Chart, namespace string) ([]byte, error) {
	var out bytes.Buffer

	for _, f := range c.CRDs {
		data := f.Data

		if namespace != "" {
			object, err := readObject(data)
			if err != nil {
				return nil, fmt.Errorf("chart %s: %s: %w", c.Metadata.Name, f.Name, err)
			}

			if bundle.MoveCRD(object, namespace) {
				if data, err = yamlv2.Marshal(object.Object); err != nil {
					return nil, fmt.Errorf("chart %s: %s: %w", c.Metadata.Name, f.Name, err)
				}
			}
		}

		fmt.Fprintf(&out, "---\n%s", data)
	}

	return out.Bytes(), nil
}
