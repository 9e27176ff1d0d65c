package watch

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/capstan-project/capstan/controllers/release/storage"
)

// Releases enqueues the provider whose release another program changes in one of Helm's records.
func (k Kind) Releases() handler.EventHandler {
	return changeHandler{
		EventHandler: handler.EnqueueRequestsFromMapFunc(k.enqueue(keysField, releaseKey, nil)),
		changed:      foreignWork,
	}
}

// releaseKey returns the key of the resource whose release a record belongs to.
func releaseKey(record client.Object) []string {
	return []string{objectKey("release", record.GetNamespace(), storage.ReleaseName(record.GetLabels()))}
}

// foreignWork passes on what other programs do to records. The operator knows its own changes, and
// old records are pruned all the time.
var foreignWork = predicate.And(
	predicate.NewPredicateFuncs(func(o client.Object) bool { return storage.IsRecord(o.GetLabels()) }),
	predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return storage.IsChangedByOthers(e.Object.GetLabels()) },
		UpdateFunc: func(e event.UpdateEvent) bool { return storage.IsChangedByOthers(e.ObjectNew.GetLabels()) },
		DeleteFunc: func(e event.DeleteEvent) bool { return storage.IsCurrent(e.Object.GetLabels()) },
	},
)
