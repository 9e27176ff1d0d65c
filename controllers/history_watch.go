package controllers

import (
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// onHistory wakes the provider whose release another program works on.
func (r *Reconciler) onHistory(history cache.Cache) source.Source {
	return source.Kind(
		history,
		secretMetadata(),
		handler.EnqueueRequestsFromMapFunc(r.enqueue(keysField, releaseKey, isRelease)),
		foreignWork,
	)
}

// releaseKey is the key of the resource that a record is of.
func releaseKey(record client.Object) []string {
	return []string{objectKey("release", record.GetNamespace(), record.GetLabels()["name"])}
}

// isRelease reports whether a record is of the provider's release.
func isRelease(p v1alpha2.Provider, record client.Object) bool {
	return p.GetNamespace() == record.GetNamespace() && releaseName(v1alpha2.Label(p)) == record.GetLabels()["name"]
}

// foreignWork lets through what other programs do to records. What Capstan does itself it knows
// already, and old records go by themselves.
var foreignWork = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return storage.IsChangedByOthers(e.Object.GetLabels()) },
	UpdateFunc: func(e event.UpdateEvent) bool { return storage.IsChangedByOthers(e.ObjectNew.GetLabels()) },
	DeleteFunc: func(e event.DeleteEvent) bool { return storage.IsCurrent(e.Object.GetLabels()) },
}
