package chartgen

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/expr"
)

// Namespace returns the labels and annotations that the namespace of a chart's release should have with
// the given values. It leaves out the labels that identify the provider for clusterctl, because
// several providers may share a namespace, and annotations for Helm, of whose release it is no part. Errors
// contain no values.
func Namespace(c *chart.Chart, values map[string]any) (labels, annotations map[string]string, err error) {
	source := c.Metadata.Annotations[AnnotationNamespace]
	if source == "" {
		return nil, nil, nil
	}

	text, err := expr.Parse(source)
	if err != nil {
		return nil, nil, fmt.Errorf("chart %s: annotation %s: %w", c.Metadata.Name, AnnotationNamespace, err)
	}

	// The chart's schema says which variables are required: those without default at their first use in all
	// components, of which the Namespace is only a part. The others are empty if they are not set.
	given, _ := values["variables"].(map[string]any)
	variables := map[string]string{}

	for _, v := range text.Variables() {
		variables[v.Name], _ = given[v.Name].(string)
	}

	content, err := (&bundle.Document{Text: text}).Decode(variables)
	if err != nil {
		return nil, nil, fmt.Errorf("chart %s: the provider's Namespace: %w", c.Metadata.Name, err)
	}

	namespace := &unstructured.Unstructured{Object: content}

	labels, annotations = namespace.GetLabels(), namespace.GetAnnotations()

	delete(labels, v1alpha2.ClusterctlLabel)
	delete(labels, v1alpha2.ClusterctlProviderLabel)
	maps.DeleteFunc(annotations, func(key, _ string) bool { return bundle.IsHelmAnnotation(key) })

	return labels, annotations, nil
}
