package drift

import (
	"encoding/base64"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/cluster"
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

// autoscalers are the kinds that set the replicas of the object in their spec.scaleTargetRef.
var autoscalers = []schema.GroupVersionKind{
	{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"},
	{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledObject"},
}

// replicasPath is the field that autoscalers set, replicasPointer its JSON pointer.
var replicasPath = []string{"spec", "replicas"}

const replicasPointer = "/spec/replicas"

// isScaled reports whether an autoscaler sets the replicas of an object.
func isScaled(client *cluster.Client, info *resource.Info) (bool, error) {
	for _, kind := range autoscalers {
		list, err := client.List(kind, info.Namespace)
		if meta.IsNoMatchError(err) {
			continue
		}

		if err != nil {
			return false, fmt.Errorf("look for its %s: %w", kind.Kind, err)
		}

		if anyScales(list, info) {
			return true, nil
		}
	}

	return false, nil
}

func anyScales(autoscalers *unstructured.UnstructuredList, info *resource.Info) bool {
	target := info.Mapping.GroupVersionKind

	for _, autoscaler := range autoscalers.Items {
		ref, _, _ := unstructured.NestedMap(autoscaler.Object, "spec", "scaleTargetRef")

		kind, _ := ref["kind"].(string)
		if kind == "" {
			kind = "Deployment" // KEDA's default
		}

		apiVersion, _ := ref["apiVersion"].(string)

		gv, err := schema.ParseGroupVersion(apiVersion)
		if err != nil {
			continue
		}

		sameGroup := apiVersion == "" || gv.Group == target.Group
		if sameGroup && kind == target.Kind && ref["name"] == info.Name {
			return true
		}
	}

	return false
}
