package release

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
)

// Keys returns the keys of the record's objects, in its order.
func (r *Record) Keys() []object.Key {
	keys := make([]object.Key, 0, len(r.Objects))
	for _, o := range r.Objects {
		keys = append(keys, object.KeyOf(o))
	}

	return keys
}

// Paused reports whether the record has Deployments and all of them are scaled to zero by spec.paused.
func (r *Record) Paused() bool {
	paused := false

	for _, o := range r.Objects {
		if o.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: "apps", Kind: "Deployment"}) {
			continue
		}

		if _, paused = o.GetAnnotations()[v1alpha2.PausedReplicasAnnotation]; !paused {
			return false
		}
	}

	return paused
}

// Select returns the record's objects with the given keys.
func (r *Record) Select(keys []object.Key) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(r.Objects), func(o *unstructured.Unstructured) bool {
		return !slices.Contains(keys, object.KeyOf(o))
	})
}
