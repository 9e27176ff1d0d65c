package watch

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capstan-project/capstan/controllers/release/storage"
)

// Releases enqueues the provider whose release another program changes in one of Helm's records. The operator knows its
// own changes, and old records are pruned all the time.
func (k Kind) Releases() handler.EventHandler {
	find := k.enqueue(keysField, releaseKey, nil)

	return onChange(func(ctx context.Context, _, now, record client.Object) []reconcile.Request {
		isForeign := storage.IsChangedByOthers
		if now == nil {
			isForeign = storage.IsCurrent
		}

		if !storage.IsRecord(record.GetLabels()) || !isForeign(record.GetLabels()) {
			return nil
		}

		return find(ctx, record)
	})
}

// releaseKey returns the key of the resource whose release a record belongs to.
func releaseKey(record client.Object) []string {
	return []string{objectKey("release", record.GetNamespace(), storage.ReleaseName(record.GetLabels()))}
}
