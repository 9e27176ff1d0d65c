package release

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

// Select returns the record's objects with the given keys.
func (r *Record) Select(keys []object.Key) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(r.Objects), func(o *unstructured.Unstructured) bool {
		return !slices.Contains(keys, object.KeyOf(o))
	})
}
