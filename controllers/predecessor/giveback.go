package predecessor

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// maxHash limits what is recorded of cluster-api-operator's annotation, which is a hash with 64 digits.
const maxHash = 128

// TakeOver removes cluster-api-operator's finalizer from a resource, and records in an annotation what GiveBack
// restores. It reports whether the resource had the finalizer.
func TakeOver(resource client.Object) bool {
	if !Release(resource) {
		return false
	}

	hash := resource.GetAnnotations()[v1alpha2.AppliedSpecHashAnnotation]
	if len(hash) > maxHash {
		hash = ""
	}

	annotate(resource, v1alpha2.TakenOverAnnotation, hash)

	return true
}

// WasTakenOver reports whether a resource was taken over from cluster-api-operator and not given back since.
func WasTakenOver(resource client.Object) bool {
	_, recorded := resource.GetAnnotations()[v1alpha2.TakenOverAnnotation]
	return recorded
}

// GiveBack makes a resource cluster-api-operator's again: it has that operator's finalizer and annotation, and not
// Capstan's.
func GiveBack(resource client.Object) {
	controllerutil.RemoveFinalizer(resource, v1alpha2.Finalizer)
	controllerutil.AddFinalizer(resource, Finalizer)

	annotations := resource.GetAnnotations()
	hash := annotations[v1alpha2.TakenOverAnnotation]
	delete(annotations, v1alpha2.TakenOverAnnotation)
	delete(annotations, v1alpha2.AppliedSpecHashAnnotation)
	resource.SetAnnotations(annotations)

	if hash != "" {
		annotate(resource, v1alpha2.AppliedSpecHashAnnotation, hash)
	}
}

// IsGivenBack reports whether a resource was given back. Capstan leaves it alone until the annotation is removed that
// has asked for it.
func IsGivenBack(resource v1alpha2.Provider) bool {
	return v1alpha2.Asks(resource, v1alpha2.GiveBackAnnotation) && Manages(resource) &&
		!controllerutil.ContainsFinalizer(resource, v1alpha2.Finalizer)
}

func annotate(resource client.Object, name, value string) {
	annotations := resource.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}

	annotations[name] = value
	resource.SetAnnotations(annotations)
}
