package manifest

import (
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// SetPaused adapts the objects of an earlier revision, which may have been rendered while the provider was paused or
// while it was not. It scales the Deployments to zero if the provider is paused now, and otherwise to their usual
// number of replicas.
func SetPaused(objects []*unstructured.Unstructured, paused bool) {
	if paused {
		pause(objects)
	} else {
		resume(objects)
	}
}

// pause scales all Deployments to zero. An annotation keeps the number of replicas that each has
// otherwise.
func pause(objects []*unstructured.Unstructured) {
	for _, o := range deployments(objects) {
		replicas, defined, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
		if !defined {
			replicas = 1 // the API server's default
		}

		annotations := o.GetAnnotations()
		if annotations[v1alpha2.PausedReplicasAnnotation] != "" && replicas == 0 {
			continue
		}

		if annotations == nil {
			annotations = map[string]string{}
		}

		annotations[v1alpha2.PausedReplicasAnnotation] = strconv.FormatInt(replicas, 10)
		o.SetAnnotations(annotations)
		setReplicas(o, 0)
	}
}

// resume undoes pause.
func resume(objects []*unstructured.Unstructured) {
	for _, o := range deployments(objects) {
		annotations := o.GetAnnotations()

		replicas, err := strconv.ParseInt(annotations[v1alpha2.PausedReplicasAnnotation], 10, 64)
		if err != nil {
			continue
		}

		delete(annotations, v1alpha2.PausedReplicasAnnotation)

		if len(annotations) == 0 {
			annotations = nil
		}

		o.SetAnnotations(annotations)
		setReplicas(o, replicas)
	}
}

func setReplicas(deployment *unstructured.Unstructured, replicas int64) {
	// A spec that is no map is refused when the release is installed.
	_ = unstructured.SetNestedField(deployment.Object, replicas, "spec", "replicas")
}
