package controllers

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/storage"
	"github.com/capstan-project/capstan/controllers/watch"
)

// CacheOptions keep out of the manager's cache what nothing reads from it: Helm's own Secrets and, except for provider
// resources, managed fields and the content of namespaces that are not watched.
func CacheOptions(scope watch.Scope) cache.Options {
	notHelm := fields.OneTermNotEqualSelector("type", storage.RecordType)

	return cache.Options{
		DefaultTransform: stripManagedFields,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.ConfigMap{}: {Namespaces: scope.CacheNamespaces()},
			&corev1.Secret{}:    {Namespaces: scope.CacheNamespaces(), Field: notHelm},
		},
	}
}

// stripManagedFields removes the managed fields of everything but provider resources. Options by kind would need the
// kinds of these to be served before the operator can say which are not.
func stripManagedFields(object any) (any, error) {
	if _, ok := object.(v1alpha2.Provider); ok {
		return object, nil
	}

	return cache.TransformStripManagedFields()(object)
}
