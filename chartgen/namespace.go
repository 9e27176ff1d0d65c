package chartgen

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
)

// namespaceLabels are the labels of the bundle's Namespace object as text. Those by which
// clusterctl tells providers apart are left out: several providers may share a namespace.
func namespaceLabels(components *bundle.Components) string {
	set := labels.Set{}

	for i := range components.Documents {
		if doc := &components.Documents[i]; doc.IsNamespace() {
			set = labels.Merge(set, doc.Object.GetLabels())
		}
	}

	delete(set, v1alpha2.ClusterctlLabel)
	delete(set, v1alpha2.ClusterctlProviderLabel)

	return set.String()
}

// NamespaceLabels are the labels that the namespace of a chart's release should have.
func NamespaceLabels(c *chart.Chart) (map[string]string, error) {
	set, err := labels.ConvertSelectorToLabelsMap(c.Metadata.Annotations[AnnotationNamespaceLabels])
	if err != nil {
		return nil, fmt.Errorf("chart %s: annotation %s: %w", c.Metadata.Name, AnnotationNamespaceLabels, err)
	}

	return set, nil
}
