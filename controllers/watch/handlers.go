package watch

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// onChange enqueues what find returns for the change of an object: before is nil for one that was created, and now for
// one that was deleted; changed is never nil.
func onChange(
	find func(ctx context.Context, before, now, changed client.Object) []reconcile.Request,
) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

	add := func(q queue, found []reconcile.Request) {
		for _, request := range found {
			q.Add(request)
		}
	}

	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { add(q, find(ctx, nil, e.Object, e.Object)) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			add(q, find(ctx, e.ObjectOld, e.ObjectNew, e.ObjectNew))
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { add(q, find(ctx, e.Object, nil, e.Object)) },
	}
}
