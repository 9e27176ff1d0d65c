package watch

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// eventHandlers hands each event to all of them.
type eventHandlers []handler.EventHandler

func (all eventHandlers) Create(ctx context.Context, e event.CreateEvent, q queue) {
	for _, h := range all {
		h.Create(ctx, e, q)
	}
}

func (all eventHandlers) Update(ctx context.Context, e event.UpdateEvent, q queue) {
	for _, h := range all {
		h.Update(ctx, e, q)
	}
}

func (all eventHandlers) Delete(ctx context.Context, e event.DeleteEvent, q queue) {
	for _, h := range all {
		h.Delete(ctx, e, q)
	}
}

func (all eventHandlers) Generic(ctx context.Context, e event.GenericEvent, q queue) {
	for _, h := range all {
		h.Generic(ctx, e, q)
	}
}

// changeHandler hands on the events that changed selects.
type changeHandler struct {
	handler.EventHandler
	changed predicate.Predicate
}

func (h changeHandler) Create(ctx context.Context, e event.CreateEvent, q queue) {
	if h.changed.Create(e) {
		h.EventHandler.Create(ctx, e, q)
	}
}

func (h changeHandler) Update(ctx context.Context, e event.UpdateEvent, q queue) {
	if h.changed.Update(e) {
		h.EventHandler.Update(ctx, e, q)
	}
}

func (h changeHandler) Delete(ctx context.Context, e event.DeleteEvent, q queue) {
	if h.changed.Delete(e) {
		h.EventHandler.Delete(ctx, e, q)
	}
}

func (h changeHandler) Generic(ctx context.Context, e event.GenericEvent, q queue) {
	if h.changed.Generic(e) {
		h.EventHandler.Generic(ctx, e, q)
	}
}
