package cluster

import (
	"encoding/base64"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Normalize changes an object of a manifest to what is applied. A chart does the same with the objects of its provider,
// but additional manifests and patches can bring this back:
//   - a Secret's stringData, which can be written but not read, and is moved to data
//   - the rules of an aggregated ClusterRole, which Kubernetes gathers from others
func Normalize(o *unstructured.Unstructured) {
	if o.GroupVersionKind() == (schema.GroupVersionKind{Version: "v1", Kind: "Secret"}) {
		moveStringData(o)
	}

	if isAggregated(o) {
		delete(o.Object, "rules")
	}
}

// moveStringData moves what is text. The API server refuses the rest.
func moveStringData(o *unstructured.Unstructured) {
	stringData, _, _ := unstructured.NestedMap(o.Object, "stringData")

	for key, value := range stringData {
		text, isText := value.(string)
		encoded := base64.StdEncoding.EncodeToString([]byte(text))

		if isText && unstructured.SetNestedField(o.Object, encoded, "data", key) == nil {
			unstructured.RemoveNestedField(o.Object, "stringData", key)
		}
	}

	if left, _, _ := unstructured.NestedMap(o.Object, "stringData"); len(left) == 0 {
		delete(o.Object, "stringData")
	}
}

// isAggregated reports whether an object is a ClusterRole whose rules Kubernetes gathers from others.
func isAggregated(o *unstructured.Unstructured) bool {
	_, aggregated := o.Object["aggregationRule"]
	return aggregated && o.GroupVersionKind().GroupKind() == schema.GroupKind{Group: rbacv1.GroupName, Kind: "ClusterRole"}
}
