package health

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/controllers/webhooks"
)

// Result is the health of one object.
type Result struct {
	Status status.Status
	// Message explains a status other than Current.
	Message string
	// NamesPod is set if the message is about a pod of the object, which it names.
	NamesPod bool
	// Finished means that the object is a Job that has completed, whether it still exists or not: it
	// remains healthy without being needed.
	Finished bool
	// Replicas is spec.replicas of an object that has the field.
	Replicas int64
	// Images are those of all containers of an object that has a template for pods, by name.
	Images map[string]string
	// Final is true if the object cannot become healthy, however long one waits.
	Final bool
	// Injected is the CA of a webhook configuration that cert-manager injects into; nil for others.
	Injected *webhooks.Injected
}

// Healthy reports whether the object is healthy.
func (r Result) Healthy() bool { return r.Status == status.CurrentStatus }

// Compute returns the health of an object. One whose kind has no status may be given by its metadata
// alone; it is healthy if it exists. An object whose status cannot be read is not healthy.
func Compute(o client.Object) Result {
	if isCompleteJob(o) {
		return Result{Status: status.CurrentStatus, Message: "has completed", Finished: true}
	}

	if o.GetDeletionTimestamp() != nil {
		return Result{Status: status.TerminatingStatus, Message: "is being deleted"}
	}

	switch o := o.(type) {
	case *metav1.PartialObjectMetadata:
		return Result{Status: status.CurrentStatus}
	case *unstructured.Unstructured:
		if webhooks.Kinds[o.GroupVersionKind().GroupKind()] {
			return Result{Status: status.CurrentStatus, Injected: webhooks.Of(o)}
		}

		result, err := status.Compute(ofAnyRevision(o))
		if err != nil {
			return Result{Status: status.UnknownStatus, Message: "its status cannot be read: " + err.Error()}
		}

		if o.GroupVersionKind().GroupKind() == jobKind {
			return computeJob(o, result)
		}

		found := Result{Status: result.Status, Message: result.Message}
		found.Replicas, _, _ = unstructured.NestedInt64(o.Object, "spec", "replicas")
		found.Images = Images(o)

		if found.Healthy() {
			return computeRequired(o, found)
		}

		if found.Status == status.InProgressStatus && isUnobserved(o) {
			found.Message = "its controller has not observed the last change yet"
		}

		if isPendingClaim(o) {
			found.Message = fmt.Sprintf("it has no volume, or its StorageClass waits for a pod that uses it; see "+
				"kubectl describe persistentvolumeclaim %s -n %s", o.GetName(), o.GetNamespace())
		}

		if isPausedRollout(o) {
			found.Message = fmt.Sprintf("its rollout is paused; run `kubectl rollout resume deployment/%s -n %s`",
				o.GetName(), o.GetNamespace())
		}

		return found
	default:
		return Result{Status: status.UnknownStatus, Message: "its status cannot be read"}
	}
}

// Images returns the images of all containers of an object that has a template for pods, by name; nil for others.
func Images(o *unstructured.Unstructured) map[string]string {
	var images map[string]string

	for _, field := range []string{"initContainers", "containers"} {
		for _, container := range bundle.NestedMaps(o.Object, "spec", "template", "spec", field) {
			name, _ := container["name"].(string)
			image, _ := container["image"].(string)

			if images == nil {
				images = map[string]string{}
			}

			images[name] = image
		}
	}

	return images
}

// isUnobserved reports whether an object has changed since its controller has written its status.
func isUnobserved(o *unstructured.Unstructured) bool {
	observed, found, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	return found && observed != o.GetGeneration()
}

// isPendingClaim reports whether an object is a PersistentVolumeClaim that is not bound yet.
func isPendingClaim(o *unstructured.Unstructured) bool {
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")

	return phase == string(corev1.ClaimPending) &&
		o.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "PersistentVolumeClaim"}
}

// isPausedRollout reports whether an object is a Deployment whose rollout a user has paused, so that its pods stay as
// they are.
func isPausedRollout(o *unstructured.Unstructured) bool {
	paused, _, _ := unstructured.NestedBool(o.Object, "spec", "paused")
	return paused && o.GroupVersionKind().GroupKind() == schema.GroupKind{Group: "apps", Kind: "Deployment"}
}

// ofAnyRevision returns a workload for kstatus. The pods of one with the strategy OnDelete are replaced only when a
// user deletes them, so it is asked for its pods of any revision: kstatus would wait for those of the new one, or for
// none.
func ofAnyRevision(o *unstructured.Unstructured) *unstructured.Unstructured {
	strategy, _, _ := unstructured.NestedString(o.Object, "spec", "updateStrategy", "type")
	if strategy != "OnDelete" {
		return o
	}

	seen := o.DeepCopy()

	switch o.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "apps", Kind: "DaemonSet"}:
		if desired, found, _ := unstructured.NestedInt64(o.Object, "status", "desiredNumberScheduled"); found {
			_ = unstructured.SetNestedField(seen.Object, desired, "status", "updatedNumberScheduled")
		}
	case schema.GroupKind{Group: "apps", Kind: "StatefulSet"}:
		replicas, found, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
		if !found {
			replicas = 1
		}

		_ = unstructured.SetNestedMap(seen.Object, map[string]any{
			"type": "RollingUpdate", "rollingUpdate": map[string]any{"partition": replicas},
		}, "spec", "updateStrategy")
	}

	return seen
}

var jobKind = schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}

// isCompleteJob reports whether an object is a Job that has completed. Kubernetes deletes it some time
// afterwards, if it has a spec.ttlSecondsAfterFinished.
func isCompleteJob(o client.Object) bool {
	job, ok := o.(*unstructured.Unstructured)
	if !ok || job.GroupVersionKind().GroupKind() != jobKind {
		return false
	}

	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")

	return slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == string(batchv1.JobComplete) && condition["status"] == string(corev1.ConditionTrue)
	})
}

// computeJob returns the health of a Job that has not completed. kstatus considers a Job current once it
// has started; here that is so only while it is suspended. Kubernetes does not start one again that has
// failed. The other kinds that kstatus considers failed may recover: a Deployment that exceeded its
// deadline, for example.
func computeJob(o *unstructured.Unstructured, result *status.Result) Result {
	suspended, _, _ := unstructured.NestedBool(o.Object, "spec", "suspend")
	if result.Status == status.CurrentStatus && !suspended {
		return Result{Status: status.InProgressStatus, Message: "has not completed yet"}
	}

	return Result{Status: result.Status, Message: result.Message, Final: result.Status == status.FailedStatus}
}

// kindsWithoutStatus are the kinds whose objects are healthy if they exist.
var kindsWithoutStatus = map[schema.GroupKind]bool{
	{Kind: "ConfigMap"}:      true,
	{Kind: "Secret"}:         true,
	{Kind: "Service"}:        true,
	{Kind: "ServiceAccount"}: true,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:                       true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:                true,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:                              true,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:                       true,
}
