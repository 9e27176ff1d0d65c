package apply

import (
	"encoding/base64"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/chartgen/bundle"
)

// Normalize changes an object of a manifest to what is applied. The API server derives fields from others, and keeps
// them when these are dropped, because no program owns them. Other fields can be written, but not read, or are filled
// in by other programs:
//   - a Secret's stringData, which is moved to data
//   - the rules of an aggregated ClusterRole, which Kubernetes gathers from others
//   - the account of pods, which has two names
//   - the types of a NetworkPolicy, which follow from its rules when it is created
//   - the metrics that version 1 of an autoscaler has in an annotation
func Normalize(o *unstructured.Unstructured) {
	if o.GroupVersionKind() == (schema.GroupVersionKind{Version: "v1", Kind: "Secret"}) {
		moveStringData(o)
	}

	if isAggregated(o) {
		delete(o.Object, "rules")
	}

	if bundle.IsKubernetesGroup(o.GroupVersionKind().Group) {
		setAccount(o)
		setPolicyTypes(o)
		setMetrics(o)
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

// The fields of a pod's account. The API server copies each to the other.
const (
	accountField = "serviceAccountName"
	accountAlias = "serviceAccount"
)

// setAccount sets the account of pods that have none: an empty alias removes the one that the API server has derived
// from the account of an earlier version. A pod gets the default account when it is created, and cannot change it.
func setAccount(o *unstructured.Unstructured) {
	pod := podSpec(o)
	if pod == nil || !isText(pod[accountField]) || !isText(pod[accountAlias]) {
		return
	}

	account := bundle.NestedString(pod, accountField)
	if account == "" {
		account = bundle.NestedString(pod, accountAlias)
	}

	if account == "" && o.GetKind() == "Pod" {
		account = "default"
	}

	delete(pod, accountField)
	delete(pod, accountAlias)

	if account == "" {
		pod[accountAlias] = ""
		return
	}

	pod[accountField] = account
}

// podSpec returns the spec of the pods that an object describes; nil if it describes none.
func podSpec(o *unstructured.Unstructured) map[string]any {
	switch o.GetKind() {
	case "ReplicationController":
		return bundle.NestedMap(o.Object, "spec", "template", "spec")
	case "PodTemplate":
		return bundle.NestedMap(o.Object, "template", "spec")
	default:
		return bundle.NestedMap(bundle.PodTemplate(o.Object), "spec")
	}
}

// isText reports whether a field has a text or no value.
func isText(value any) bool {
	_, isText := value.(string)
	return isText || value == nil
}

// setPolicyTypes sets the types that the API server would give to a new NetworkPolicy: those of an earlier version
// would not enforce rules that it did not have, or deny all traffic of a direction without rules.
func setPolicyTypes(o *unstructured.Unstructured) {
	spec := bundle.NestedMap(o.Object, "spec")
	if o.GetKind() != "NetworkPolicy" || spec == nil {
		return
	}

	if types, isList := spec["policyTypes"].([]any); len(types) > 0 || !isList && spec["policyTypes"] != nil {
		return
	}

	types := []any{string(networkingv1.PolicyTypeIngress)}
	if egress, _ := spec["egress"].([]any); len(egress) > 0 {
		types = append(types, string(networkingv1.PolicyTypeEgress))
	}

	spec["policyTypes"] = types
}

// otherMetrics is the annotation in which version 1 of an autoscaler has the metrics that its fields cannot describe.
const otherMetrics = "autoscaling.alpha.kubernetes.io/metrics"

// setMetrics sets the metrics of an autoscaler that has none but that of its fields: those that were applied in another
// version would stay, because what replaces them in the list is no list in this version.
func setMetrics(o *unstructured.Unstructured) {
	annotations := o.GetAnnotations()
	if _, published := annotations[otherMetrics]; published || !isFirstAutoscaler(o) {
		return
	}

	if annotations == nil {
		annotations = map[string]string{}
	}

	annotations[otherMetrics] = ""
	o.SetAnnotations(annotations)
}

// isFirstAutoscaler reports whether an object is an autoscaler in version 1 of its API.
func isFirstAutoscaler(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind() == autoscalingv1.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler")
}
