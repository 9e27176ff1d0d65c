package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: "operator.cluster.x-k8s.io", Version: "v1alpha2"}

// AddToScheme registers all kinds and their lists.
func AddToScheme(scheme *runtime.Scheme) error {
	for _, t := range ProviderTypes() {
		scheme.AddKnownTypes(GroupVersion, t.New(), t.NewList())
	}

	metav1.AddToGroupVersion(scheme, GroupVersion)

	return nil
}
