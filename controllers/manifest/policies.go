package manifest

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/asks"
)

// boundPolicies replaces annotations of published objects that allow more than the policies of the resource do: its
// author decides, not the publisher.
func boundPolicies(objects []*unstructured.Unstructured, spec *v1alpha2.PoliciesSpec) {
	for _, o := range objects {
		annotations := o.GetAnnotations()

		if bounded := asks.Bound(annotations, spec); len(bounded) > 0 {
			maps.Copy(annotations, bounded)
			o.SetAnnotations(annotations)
		}
	}
}

// setDefaultPolicies adds the policies of the resource to the objects that have no annotations for them.
func setDefaultPolicies(objects []*unstructured.Unstructured, spec *v1alpha2.PoliciesSpec) {
	for _, o := range objects {
		annotations := asks.Defaults(spec)

		present, _, err := unstructured.NestedStringMap(o.Object, "metadata", "annotations")
		if err != nil || len(annotations) == 0 {
			continue // what is no map of texts is refused when the release is installed
		}

		maps.Copy(annotations, present)
		o.SetAnnotations(annotations)
	}
}
