package controllers

import (
	"cmp"
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/crds"
)

// enqueue is a handler that queues the kind's resources for which want is true of the changed object.
func (r *Reconciler) enqueue(want func(v1alpha2.Provider, client.Object) bool) handler.MapFunc {
	return func(ctx context.Context, changed client.Object) []reconcile.Request {
		list := r.Type.NewList()
		if err := r.List(ctx, list); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "cannot list resources to be woken", "kind", r.Type)
			return nil
		}
		var requests []reconcile.Request
		for _, p := range list.GetItems() {
			if r.Scope.Includes(p) && want(p, changed) {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)})
			}
		}
		return requests
	}
}

// onConfigMap wakes resources that a ConfigMap concerns: always, or only while they are not ready.
func (r *Reconciler) onConfigMap(always bool) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(r.enqueue(func(p v1alpha2.Provider, changed client.Object) bool {
		return (always || !conditions.IsReady(p)) && (isSource(p, changed) || isAdditional(p, changed))
	}))
}

// isSource says whether a ConfigMap or Secret is, or could now be, the resource's source.
func isSource(p v1alpha2.Provider, changed client.Object) bool {
	fetch := p.GetSpec().FetchConfig
	if fetch == nil || fetch.Selector == nil || p.GetNamespace() != changed.GetNamespace() {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(fetch.Selector)
	return err == nil && selector.Matches(labels.Set(changed.GetLabels()))
}

// isAdditional says whether a ConfigMap holds the resource's additional manifests.
func isAdditional(p v1alpha2.Provider, changed client.Object) bool {
	manifests := p.GetSpec().AdditionalManifests
	return manifests != nil && manifests.Name == changed.GetName() && cmp.Or(manifests.Namespace, p.GetNamespace()) == changed.GetNamespace()
}

// onSecret wakes resources that a Secret concerns, for its variables, its credentials, or as a source: always, or only while
// they are not ready.
func (r *Reconciler) onSecret(always bool) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(r.enqueue(func(p v1alpha2.Provider, changed client.Object) bool {
		if !always && conditions.IsReady(p) {
			return false
		}
		secret, named := p.GetSpec().VariablesSecret(p.GetNamespace())
		return named && secret == client.ObjectKeyFromObject(changed) || hasCredentials(p, changed) || isSource(p, changed)
	}))
}

// hasCredentials says whether a Secret is the one for the resource's source.
func hasCredentials(p v1alpha2.Provider, changed client.Object) bool {
	fetch := p.GetSpec().FetchConfig
	return fetch != nil && fetch.SecretRef != nil && fetch.SecretRef.Name == changed.GetName() && p.GetNamespace() == changed.GetNamespace()
}

// onProvider wakes resources that another provider's resource concerns: all that wait for core or for a change of
// contract, the twin in another namespace, and core while it waits to be deleted.
func (r *Reconciler) onProvider(t v1alpha2.ProviderType) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(r.enqueue(func(p v1alpha2.Provider, changed client.Object) bool {
		if conditions.IsReady(p) || p.GetUID() == changed.GetUID() {
			return false
		}
		switch t {
		case r.Type:
			return p.GetName() == changed.GetName()
		case v1alpha2.CoreProviderType:
			return true
		default:
			return r.Type == v1alpha2.CoreProviderType
		}
	}))
}

// onDefinition wakes the providers that a CRD belongs to or that bring one of its name.
func (r *Reconciler) onDefinition() handler.TypedEventHandler[*apiextensionsv1.CustomResourceDefinition, reconcile.Request] {
	find := r.enqueue(func(p v1alpha2.Provider, changed client.Object) bool {
		return r.CRDs.Concerns(changed, v1alpha2.Label(p))
	})
	return handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, d *apiextensionsv1.CustomResourceDefinition) []reconcile.Request {
		return find(ctx, d)
	})
}

// definitionChanged lets through what matters to a provider: a CRD that is served, no longer what it was, or gone.
var definitionChanged = predicate.TypedFuncs[*apiextensionsv1.CustomResourceDefinition]{
	CreateFunc: func(e event.TypedCreateEvent[*apiextensionsv1.CustomResourceDefinition]) bool {
		return crds.Served(e.Object)
	},
	UpdateFunc: func(e event.TypedUpdateEvent[*apiextensionsv1.CustomResourceDefinition]) bool {
		return !crds.Same(e.ObjectNew, e.ObjectOld)
	},
}
