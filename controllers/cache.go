package controllers

import (
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// CacheOptions keep managed fields out of the manager's cache, except for those of provider resources.
func CacheOptions() cache.Options {
	return cache.Options{DefaultTransform: stripManagedFields}
}

// stripManagedFields removes the managed fields of everything but provider resources. Options by kind would need the
// kinds of these to be served before the operator can say which are not.
func stripManagedFields(object any) (any, error) {
	if _, ok := object.(v1alpha2.Provider); ok {
		return object, nil
	}

	return cache.TransformStripManagedFields()(object)
}
