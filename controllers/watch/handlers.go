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
func onChange[T client.Object](
	find func(ctx context.Context, before, now, changed T) []reconcile.Request,
) handler.TypedEventHandler[T, reconcile.Request] {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

	var none T

	add := func(q queue, found []reconcile.Request) {
		for _, request := range found {
			q.Add(request)
		}
	}

	return handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[T], q queue) {
			add(q, find(ctx, none, e.Object, e.Object))
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[T], q queue) {
			add(q, find(ctx, e.ObjectOld, e.ObjectNew, e.ObjectNew))
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[T], q queue) {
			add(q, find(ctx, e.Object, none, e.Object))
		},
	}
}
