package manifest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/capstan-project/capstan/chartgen/typed"
)

// CheckType returns which field of an object has a value of the wrong type. It knows the fields of the kinds of
// Kubernetes, and the metadata of all others. The error is a *typed.Error, which contains no values.
func CheckType(o *unstructured.Unstructured) error {
	kind := o.GroupVersionKind()
	if typed.Known(kind) {
		return typed.Check(o)
	}

	return typed.CheckAs(o, func() any {
		if known, err := scheme.Scheme.New(kind); err == nil {
			return known
		}

		return &metav1.PartialObjectMetadata{}
	})
}
