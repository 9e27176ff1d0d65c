package drift

import (
	"encoding/base64"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

const (
	admissionGroup   = "admissionregistration.k8s.io"
	crdGroup         = "apiextensions.k8s.io"
	aggregationGroup = "apiregistration.k8s.io"
	rbacGroup        = "rbac.authorization.k8s.io"
)

// injected are fields that other programs fill in, whatever the manifest has: cert-manager's
// injector fills in certificates, the aggregation of ClusterRoles fills in rules. They count only
// when an object is created.
var injected = []struct {
	kind  schema.GroupKind
	field []string
	// ifSet limits the rule to objects with this field.
	ifSet string
}{
	{
		kind:  schema.GroupKind{Group: admissionGroup, Kind: "MutatingWebhookConfiguration"},
		field: []string{"webhooks", "*", "clientConfig", "caBundle"},
	},
	{
		kind:  schema.GroupKind{Group: admissionGroup, Kind: "ValidatingWebhookConfiguration"},
		field: []string{"webhooks", "*", "clientConfig", "caBundle"},
	},
	{
		kind:  schema.GroupKind{Group: crdGroup, Kind: "CustomResourceDefinition"},
		field: []string{"spec", "conversion", "webhook", "clientConfig", "caBundle"},
	},
	{
		kind:  schema.GroupKind{Group: aggregationGroup, Kind: "APIService"},
		field: []string{"spec", "caBundle"},
	},
	{
		kind:  schema.GroupKind{Group: rbacGroup, Kind: "ClusterRole"},
		field: []string{"rules"},
		ifSet: "aggregationRule",
	},
}

// removeInjected removes the fields that other programs fill in.
func removeInjected(o *unstructured.Unstructured) {
	for _, rule := range injected {
		if o.GroupVersionKind().GroupKind() != rule.kind {
			continue
		}

		if _, isSet := o.Object[rule.ifSet]; isSet || rule.ifSet == "" {
			removeField(o.Object, rule.field)
		}
	}
}

// removeField removes the field at a path, where "*" means every item of a list.
func removeField(value any, path []string) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			removeField(item, path[1:])
		}
	case map[string]any:
		if len(path) == 1 {
			delete(value, path[0])
			return
		}

		removeField(value[path[0]], path[1:])
	}
}

// Comparable returns a copy of an object of a release that can be compared with the one in the cluster, without the
// fields that other programs fill in.
func Comparable(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	moveStringData(o)
	removeInjected(o)

	return o
}

// moveStringData moves a Secret's stringData, which can be written but not read, to where the API
// server shows it.
func moveStringData(o *unstructured.Unstructured) {
	stringData, ok := o.Object["stringData"].(map[string]any)
	if !ok || o.GroupVersionKind() != (schema.GroupVersionKind{Version: "v1", Kind: "Secret"}) {
		return
	}

	data, _ := o.Object["data"].(map[string]any)
	if data == nil {
		data = map[string]any{}
	}

	for key, value := range stringData {
		if text, ok := value.(string); ok {
			data[key] = base64.StdEncoding.EncodeToString([]byte(text))
		}
	}

	o.Object["data"] = data
	delete(o.Object, "stringData")
}

// isExcluded reports whether an annotation excludes an object from the comparison.
func isExcluded(o metav1.Object) bool {
	return o.GetAnnotations()[v1alpha2.DriftAnnotation] == v1alpha2.DriftIgnore
}
