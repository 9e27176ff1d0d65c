package release

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Names returns the identities of the record's objects, in its order.
func (r *Record) Names() []Object {
	names := make([]Object, 0, len(r.Objects))
	for _, o := range r.Objects {
		names = append(names, nameOf(o))
	}

	return names
}

// Select returns the record's objects with the given identities.
func (r *Record) Select(names []Object) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(r.Objects), func(o *unstructured.Unstructured) bool {
		return !slices.Contains(names, nameOf(o))
	})
}

func nameOf(o *unstructured.Unstructured) Object {
	return Object{GroupVersionKind: o.GroupVersionKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
}
