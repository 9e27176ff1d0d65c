package apply

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/asks"
	"github.com/capstan-project/capstan/controllers/object"
)

// replaceable are the kinds whose objects can be deleted and recreated. All that is lost with them is
// made again from the object itself. Objects of all other kinds may represent data, other objects, or
// something outside of the cluster.
var replaceable = map[schema.GroupKind]bool{
	{Kind: "ConfigMap"}:                                              true,
	{Kind: "Pod"}:                                                    true,
	{Kind: "Secret"}:                                                 true,
	{Kind: "Service"}:                                                true,
	{Group: "apps", Kind: "DaemonSet"}:                               true,
	{Group: "apps", Kind: "Deployment"}:                              true,
	{Group: "apps", Kind: "ReplicaSet"}:                              true,
	{Group: "apps", Kind: "StatefulSet"}:                             true,
	{Group: "batch", Kind: "CronJob"}:                                true,
	{Group: "batch", Kind: "Job"}:                                    true,
	{Group: "networking.k8s.io", Kind: "IngressClass"}:               true,
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:                     true,
	{Group: "policy", Kind: "PodDisruptionBudget"}:                   true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: true,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        true,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:              true,
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                  true,
}

// obstacleToReplacement returns why an object must not be deleted and recreated; empty if it may be. A protected kind
// is an obstacle whatever the policy is, and so are finalizers: the object could not be recreated at once.
func obstacleToReplacement(
	kind schema.GroupKind, policy v1alpha2.RecreatePolicy, live *unstructured.Unstructured,
) string {
	field := func(path ...string) string {
		value, _, _ := unstructured.NestedString(live.Object, path...)
		return value
	}

	switch {
	case isProtected(kind.Kind):
		return "objects of users would be deleted with it, which no policy allows"
	case policy == v1alpha2.RecreateNever:
		return "its annotation " + v1alpha2.RecreatePolicyAnnotation + " is " + string(policy)
	case len(live.GetFinalizers()) > 0:
		return "it has finalizers: " + strings.Join(live.GetFinalizers(), ", ")
	case policy == v1alpha2.RecreateAlways:
		return ""
	case !replaceable[kind]:
		return "what it represents may be lost with it"
	case kind.Kind == "Service" && field("spec", "type") == string(corev1.ServiceTypeLoadBalancer):
		return "its load balancer and address would be lost with it"
	case kind.Kind == "StatefulSet" && field("spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted") ==
		string(appsv1.DeletePersistentVolumeClaimRetentionPolicyType):
		return "its volumes would be deleted with it"
	default:
		return ""
	}
}

// replace deletes and recreates an object. refusal is what the API server said about the change.
func (d *Draft) replace(
	o, live *unstructured.Unstructured, refusal error,
) (*unstructured.Unstructured, error) {
	if err := checkReplacement(o, live, refusal); err != nil {
		return nil, err
	}

	key := object.KeyOf(o)
	d.log.Info("Replacing an object to change an immutable field",
		"object", key.String(), "reason", object.Reason(key.Kind, refusal))

	if err := d.delete(live); err != nil {
		return nil, fmt.Errorf("replace it: %w", err)
	}

	created, err := d.create(d.connection.client, o)
	if err != nil {
		return nil, fmt.Errorf("recreate it after its deletion: %w", err)
	}

	return created, nil
}

// checkReplacement returns an error if an object must not be deleted and recreated after the refusal of a
// change.
func checkReplacement(o, live *unstructured.Unstructured, refusal error) error {
	key := object.KeyOf(o)
	policy := asks.Recreate(o)

	if obstacle := obstacleToReplacement(key.GroupKind(), policy, live); obstacle != "" {
		return &notAppliedError{kind: key.Kind, refusal: refusal, why: fmt.Sprintf("this change requires that the object is "+
			"recreated, but it is not deleted because %s; delete it yourself if that is acceptable, or set the annotation "+
			"%s: %s on it in the release to keep it as it is",
			obstacle, v1alpha2.UpdatePolicyAnnotation, v1alpha2.UpdateOnce)}
	}

	return nil
}

// notAppliedError means that the API server has refused a change, and why Capstan does not make it possible.
type notAppliedError struct {
	kind    string
	refusal error
	why     string
}

func (e *notAppliedError) Error() string { return object.Reason(e.kind, e.refusal) + "; " + e.why }

// Unwrap returns the API server's error.
func (e *notAppliedError) Unwrap() error { return e.refusal }
