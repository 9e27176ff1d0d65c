package release

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
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

// Needed returns the keys of the objects that the revision of the record needs: all but the Jobs that have
// completed in it.
func (r *Record) Needed(revision state.Revision) []object.Key {
	return slices.DeleteFunc(r.Keys(), func(o object.Key) bool { return storage.IsFinished(revision, o) })
}

// Select returns the record's objects with the given keys.
func (r *Record) Select(keys []object.Key) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(r.Objects), func(o *unstructured.Unstructured) bool {
		return !slices.Contains(keys, object.KeyOf(o))
	})
}
