package controllers

import (
	"cmp"
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/preflight"
)

// enqueue is a handler that queues those of the kind's resources for which want is true of the
// changed object. They are looked for under the keys of an index that the change has.
func (r *Reconciler) enqueue(
	field string,
	keys func(client.Object) []string,
	want func(v1alpha2.Provider, client.Object) bool,
) handler.MapFunc {
	return func(ctx context.Context, changed client.Object) []reconcile.Request {
		var requests []reconcile.Request

		for _, key := range keys(changed) {
			found, err := listed(ctx, r.Client, r.Type, field, key)
			if err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "cannot list resources to be woken", "kind", r.Type)
				return nil
			}

			for _, p := range found {
				if r.Scope.Includes(p) && want(p, changed) {
					requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)})
				}
			}
		}

		return requests
	}
}

// waits reports whether a resource may wait for something: it is not ready, or its newest spec was not
// looked at yet.
func waits(p v1alpha2.Provider) bool {
	return !conditions.IsReady(p) || p.GetStatus().ObservedGeneration != p.GetGeneration()
}

// onConfigMap wakes resources that a ConfigMap concerns: always, or only while they wait.
func (r *Reconciler) onConfigMap(always bool) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(
		r.enqueue(keysField, inputKeys("ConfigMap"), func(p v1alpha2.Provider, changed client.Object) bool {
			return (always || waits(p)) && (isSource(p, changed) || isAdditional(p, changed))
		}),
	)
}

// inputKeys are the keys of the resources that a ConfigMap or Secret may be an input of.
func inputKeys(kind string) func(client.Object) []string {
	return func(changed client.Object) []string {
		return []string{objectKey(kind, changed.GetNamespace(), changed.GetName()), selectorKey(changed.GetNamespace())}
	}
}

// isSource reports whether a ConfigMap or Secret is, or could now be, the resource's source.
func isSource(p v1alpha2.Provider, changed client.Object) bool {
	fetch := p.GetSpec().FetchConfig
	if fetch == nil || fetch.Selector == nil || p.GetNamespace() != changed.GetNamespace() {
		return false
	}

	selector, err := metav1.LabelSelectorAsSelector(fetch.Selector)

	return err == nil && selector.Matches(labels.Set(changed.GetLabels()))
}

// isAdditional reports whether a ConfigMap holds the resource's additional manifests.
func isAdditional(p v1alpha2.Provider, changed client.Object) bool {
	manifests := p.GetSpec().AdditionalManifests

	return manifests != nil && manifests.Name == changed.GetName() &&
		cmp.Or(manifests.Namespace, p.GetNamespace()) == changed.GetNamespace()
}

// onSecret wakes resources that a Secret concerns, for its variables, its credentials, or as a
// source: always, or only while they wait.
func (r *Reconciler) onSecret(always bool) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(
		r.enqueue(keysField, inputKeys("Secret"), func(p v1alpha2.Provider, changed client.Object) bool {
			if !always && !waits(p) {
				return false
			}

			secret, named := p.GetSpec().VariablesSecret(p.GetNamespace())

			return named && secret == client.ObjectKeyFromObject(changed) || hasCredentials(p, changed) || isSource(p, changed)
		}),
	)
}

// hasCredentials reports whether a Secret is the one for the resource's source.
func hasCredentials(p v1alpha2.Provider, changed client.Object) bool {
	fetch := p.GetSpec().FetchConfig

	return fetch != nil && fetch.SecretRef != nil && fetch.SecretRef.Name == changed.GetName() &&
		p.GetNamespace() == changed.GetNamespace()
}

// watchProviders watches the kinds whose resources can concern the kind's own: core, for which all
// others wait, the kind itself, and for core all the others.
func (r *Reconciler) watchProviders(b *ctrl.Builder) *ctrl.Builder {
	for _, t := range v1alpha2.ProviderTypes() {
		if t == r.Type || t == v1alpha2.CoreProviderType || r.Type == v1alpha2.CoreProviderType {
			b = b.Watches(t.New(), r.onProvider(t), builder.WithPredicates(standingChanged))
		}
	}

	return b
}

// onProvider wakes resources that another provider's resource in the same cluster concerns: all
// that wait for core or for a change of contract, the twin in another namespace, and core while it
// waits to be deleted.
func (r *Reconciler) onProvider(t v1alpha2.ProviderType) handler.EventHandler {
	field, keys := keysField, func(client.Object) []string { return []string{isWaiting} }
	if t == r.Type {
		field, keys = preflight.NameField, func(changed client.Object) []string { return []string{changed.GetName()} }
	}

	return handler.EnqueueRequestsFromMapFunc(
		r.enqueue(field, keys, func(p v1alpha2.Provider, changed client.Object) bool {
			other, ok := changed.(v1alpha2.Provider)
			return ok && waits(p) && p.GetUID() != other.GetUID() && v1alpha2.Cluster(p) == v1alpha2.Cluster(other)
		}),
	)
}

// standing is what other providers' preflight and removal look at in a resource. While hundreds
// wait for core, each other change of its status would wake them all for nothing.
type standing struct {
	generation                         int64
	deleting, ready, installed, paused bool
	contract                           string
}

func standingOf(o client.Object) standing {
	p, ok := o.(v1alpha2.Provider)
	if !ok {
		return standing{}
	}

	s := standing{
		generation: p.GetGeneration(),
		deleting:   !p.GetDeletionTimestamp().IsZero(),
		ready:      conditions.IsReady(p),
		installed: conditions.IsTrue(
			p,
			v1alpha2.ProviderInstalledCondition,
		),
		paused: conditions.IsTrue(p, v1alpha2.PausedCondition),
	}
	if contract := p.GetStatus().Contract; contract != nil {
		s.contract = *contract
	}

	return s
}

// standingChanged lets through what matters to other providers.
var standingChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool { return standingOf(e.ObjectOld) != standingOf(e.ObjectNew) },
}

// onDefinition wakes the providers that a CRD belongs to or that bring one of its name.
func (r *Reconciler) onDefinition() handler.TypedEventHandler[*apiextensionsv1.CustomResourceDefinition, reconcile.Request] {
	names := func(changed client.Object) (names []string) {
		for _, label := range r.CRDs.AffectedProviders(changed) {
			if t, name := v1alpha2.ParseLabel(label); t == r.Type {
				names = append(names, name)
			}
		}

		return names
	}
	find := r.enqueue(preflight.NameField, names, func(v1alpha2.Provider, client.Object) bool { return true })

	return handler.TypedEnqueueRequestsFromMapFunc(
		func(ctx context.Context, d *apiextensionsv1.CustomResourceDefinition) []reconcile.Request {
			return find(ctx, d)
		},
	)
}

// definitionChanged lets through what matters to a provider: a CRD that is served, no longer what
// it was, or gone.
var definitionChanged = predicate.TypedFuncs[*apiextensionsv1.CustomResourceDefinition]{
	CreateFunc: func(e event.TypedCreateEvent[*apiextensionsv1.CustomResourceDefinition]) bool {
		return crds.IsEstablished(e.Object)
	},
	UpdateFunc: func(e event.TypedUpdateEvent[*apiextensionsv1.CustomResourceDefinition]) bool {
		return !crds.IsUnchanged(e.ObjectNew, e.ObjectOld)
	},
}
