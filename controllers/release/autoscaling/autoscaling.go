// Package autoscaling knows which objects of a cluster set the replicas of others, and when their
// choice counts more than the release's.
package autoscaling

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
)

// Kinds are the kinds that set the replicas of the object in their spec.scaleTargetRef.
var Kinds = []schema.GroupVersionKind{
	{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"},
	{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledObject"},
}

// ReplicasPath is the field that autoscalers set.
var ReplicasPath = []string{"spec", "replicas"}

// Scales reports whether an object is an autoscaler, and the other one is what it scales.
func Scales(autoscaler *unstructured.Unstructured, target object.Key) bool {
	kind := autoscaler.GroupVersionKind().GroupKind()
	isAutoscaler := slices.ContainsFunc(Kinds, func(k schema.GroupVersionKind) bool { return k.GroupKind() == kind })

	return isAutoscaler && autoscaler.GetNamespace() == target.Namespace && refersTo(autoscaler, target)
}

func refersTo(autoscaler *unstructured.Unstructured, target object.Key) bool {
	ref, _, _ := unstructured.NestedMap(autoscaler.Object, "spec", "scaleTargetRef")

	kind, _ := ref["kind"].(string)
	if kind == "" {
		kind = "Deployment" // KEDA's default
	}

	apiVersion, _ := ref["apiVersion"].(string)

	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return false
	}

	sameGroup := apiVersion == "" || gv.Group == target.Group

	return sameGroup && kind == target.Kind && ref["name"] == target.Name
}

// MayHaveScaled reports whether an object has other replicas than its release defines, and these may be
// the choice of an autoscaler, if there is one. They are not if the release defines no replicas at all,
// which turns autoscalers off, or if they are left over from when the provider was paused.
func MayHaveScaled(desired, live *unstructured.Unstructured) bool {
	current, exists := replicas(live)
	if !exists {
		return false
	}

	wanted, exists := replicas(desired)
	if !exists {
		wanted = 1 // the API server's default
	}

	_, paused := live.GetAnnotations()[v1alpha2.PausedReplicasAnnotation]

	return wanted != current && wanted != 0 && !paused
}

// replicas returns the replicas of an object, if it has that field.
func replicas(o *unstructured.Unstructured) (replicas int64, exists bool) {
	value, _, _ := unstructured.NestedFieldNoCopy(o.Object, ReplicasPath...)

	switch value := value.(type) {
	case int64:
		return value, true
	case float64:
		return int64(value), true
	default:
		return 0, false
	}
}

// KeepReplicas sets the replicas that an object defines to those it has in the cluster.
func KeepReplicas(desired, live *unstructured.Unstructured) error {
	current, _ := replicas(live)
	return unstructured.SetNestedField(desired.Object, current, ReplicasPath...)
}
