package release

import (
	"encoding/base64"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// filled are the fields that others fill in, whatever the manifest says of them: certificates by
// cert-manager's injector, rules by the aggregation of ClusterRoles. They count only when an object
// is made. "*" stands for every item of a list.
var filled = []struct {
	kind  schema.GroupKind
	field []string
	// with is a field without which the rule does not hold.
	with string
}{
	{
		schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"},
		[]string{"webhooks", "*", "clientConfig", "caBundle"},
		"",
	},
	{
		schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"},
		[]string{"webhooks", "*", "clientConfig", "caBundle"},
		"",
	},
	{
		schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
		[]string{"spec", "conversion", "webhook", "clientConfig", "caBundle"},
		"",
	},
	{schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}, []string{"spec", "caBundle"}, ""},
	{schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}, []string{"rules"}, "aggregationRule"},
}

// scalers are the kinds that decide over the replicas of the object in their spec.scaleTargetRef.
var scalers = []schema.GroupVersionKind{
	{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"},
	{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledObject"},
}

// replicas is the field that scalers set, as a path and as a JSON pointer.
var replicas = []string{"spec", "replicas"}

const replicasPointer = "/spec/replicas"

// leaveFilled removes from what is wanted of an object the fields that others fill in.
func leaveFilled(o *unstructured.Unstructured) {
	for _, rule := range filled {
		if _, has := o.Object[rule.with]; o.GroupVersionKind().GroupKind() == rule.kind && (has || rule.with == "") {
			removeField(o.Object, rule.field)
		}
	}
}

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

// readable puts a Secret's stringData, which can be written but never read, where it is read.
func readable(o *unstructured.Unstructured) {
	written, ok := o.Object["stringData"].(map[string]any)
	if !ok || o.GroupVersionKind() != (schema.GroupVersionKind{Version: "v1", Kind: "Secret"}) {
		return
	}

	data, _ := o.Object["data"].(map[string]any)
	if data == nil {
		data = map[string]any{}
	}

	for key, value := range written {
		if text, ok := value.(string); ok {
			data[key] = base64.StdEncoding.EncodeToString([]byte(text))
		}
	}

	o.Object["data"] = data
	delete(o.Object, "stringData")
}

// scaled reports whether somebody else decides over an object's replicas.
func (c *client) scaled(info *resource.Info) (bool, error) {
	for _, kind := range scalers {
		mapping, err := c.cluster.mapping(kind)
		if meta.IsNoMatchError(err) {
			continue
		}

		if err != nil {
			return false, err
		}

		rest, err := c.cluster.client(kind.GroupVersion())
		if err != nil {
			return false, err
		}

		found, err := resource.NewHelper(rest, mapping).
			List(info.Namespace, kind.GroupVersion().String(), &metav1.ListOptions{})
		if err != nil {
			return false, fmt.Errorf("look for a %s of it: %w", kind.Kind, err)
		}

		if list, ok := found.(*unstructured.UnstructuredList); ok && scales(list, info) {
			return true, nil
		}
	}

	return false, nil
}

func scales(list *unstructured.UnstructuredList, info *resource.Info) bool {
	for _, scaler := range list.Items {
		ref, _, _ := unstructured.NestedMap(scaler.Object, "spec", "scaleTargetRef")

		kind, _ := ref["kind"].(string)
		if kind == "" {
			kind = "Deployment" // KEDA's default
		}

		apiVersion, _ := ref["apiVersion"].(string)
		gv, err := schema.ParseGroupVersion(apiVersion)

		named := ref["name"] == info.Name && kind == info.Mapping.GroupVersionKind.Kind
		if named && err == nil && (apiVersion == "" || gv.Group == info.Mapping.GroupVersionKind.Group) {
			return true
		}
	}

	return false
}

// excluded reports whether a person has excluded an object from the comparison.
func excluded(o metav1.Object) bool {
	return o.GetAnnotations()[v1alpha2.DriftAnnotation] == v1alpha2.DriftIgnore
}
