package lint

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/lint/contract"
)

// crd is a CustomResourceDefinition of the components.
type crd struct {
	*contract.CRD

	doc *bundle.Document
}

// workload is an object that runs Pods.
type workload struct {
	doc        *bundle.Document
	podSpec    map[string]any
	podLabels  map[string]any
	containers []map[string]any // init containers first
}

func newWorkload(doc *bundle.Document) workload {
	template := bundle.PodTemplate(doc.Object.Object)

	return workload{
		doc:        doc,
		podSpec:    bundle.NestedMap(template, "spec"),
		podLabels:  bundle.NestedMap(template, "metadata", "labels"),
		containers: bundle.Containers(doc.Object.Object),
	}
}

// nestedStrings returns the items of a list that are strings, and leaves out the others.
func nestedStrings(object map[string]any, fields ...string) []string {
	value, _, _ := unstructured.NestedFieldNoCopy(object, fields...)
	list, _ := value.([]any)

	var items []string

	for _, item := range list {
		if s, ok := item.(string); ok {
			items = append(items, s)
		}
	}

	return items
}
