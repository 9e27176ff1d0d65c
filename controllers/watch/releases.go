package watch

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// Releases watches Helm's records and enqueues the provider whose release another program changes.
func (k Kind) Releases(records cache.Cache) source.Source {
	return source.Kind(records, secretMetadata(),
		handler.EnqueueRequestsFromMapFunc(k.enqueue(keysField, releaseKey, isRelease)),
		foreignWork)
}

// releaseKey returns the key of the resource whose release a record belongs to.
func releaseKey(record client.Object) []string {
	return []string{objectKey("release", record.GetNamespace(), record.GetLabels()["name"])}
}

// isRelease reports whether a record belongs to the provider's release.
func isRelease(p v1alpha2.Provider, record client.Object) bool {
	return p.GetNamespace() == record.GetNamespace() && v1alpha2.ReleaseName(p) == record.GetLabels()["name"]
}

// foreignWork passes on what other programs do to records. The operator knows its own changes, and
// old records are pruned all the time.
var foreignWork = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return storage.IsChangedByOthers(e.Object.GetLabels()) },
	UpdateFunc: func(e event.UpdateEvent) bool { return storage.IsChangedByOthers(e.ObjectNew.GetLabels()) },
	DeleteFunc: func(e event.DeleteEvent) bool { return storage.IsCurrent(e.Object.GetLabels()) },
}

func secretMetadata() client.Object {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))

	return o
}
