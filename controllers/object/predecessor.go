package object

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// PredecessorFieldManager is the field manager with which cluster-api-operator applies the objects in its cache.
const PredecessorFieldManager = "capi-operator"

// PredecessorOwns reports whether provider resources, and nothing else, are an object's owners. cluster-api-operator
// sets such references on everything that it installs in a namespace.
func PredecessorOwns(o metav1.Object) bool {
	owners := o.GetOwnerReferences()

	other := func(owner metav1.OwnerReference) bool {
		return schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).Group != v1alpha2.GroupVersion.Group
	}

	return len(owners) > 0 && !slices.ContainsFunc(owners, other)
}
