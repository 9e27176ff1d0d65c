package watch

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/access"
	"github.com/capstan-project/capstan/controllers/preflight"
)

// Kind creates the event handlers for the resources of one kind.
type Kind struct {
	// Cache reads provider resources, by the indexes of IndexProviders.
	Cache client.Reader
	// Cluster tells the clusters of providers apart.
	Cluster preflight.ClusterOf
	// Type is the kind, and Scope selects the resources that are reconciled.
	Type  v1alpha2.ProviderType
	Scope Scope
}

// enqueue returns a map function that enqueues those of the kind's resources that an index has under the keys of the
// changed object, and for which concerns is true; nil for all.
func (k Kind) enqueue(
	field string, keys func(client.Object) []string, concerns func(v1alpha2.Provider, client.Object) bool,
) handler.MapFunc {
	return func(ctx context.Context, changed client.Object) []reconcile.Request {
		var requests []reconcile.Request

		for _, key := range keys(changed) {
			found, err := list(ctx, k.Cache, k.Type, field, key)
			if err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "Cannot list the resources that an event concerns", "kind", k.Type)
				return nil
			}

			for _, p := range found {
				if k.Scope.Includes(p) && (concerns == nil || concerns(p, changed)) {
					requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)})
				}
			}
		}

		return requests
	}
}

// Inputs enqueues the resources that use a ConfigMap or Secret, whose kind is given: they name it, or select it as
// their source.
func (k Kind) Inputs(kind string) handler.EventHandler {
	keys := func(changed client.Object) []string {
		return []string{keyOf(kind, changed), selectorKey(changed.GetNamespace())}
	}
	concerns := func(p v1alpha2.Provider, changed client.Object) bool {
		return access.Uses(p, kind, changed)
	}

	return handler.EnqueueRequestsFromMapFunc(k.enqueue(keysField, keys, concerns))
}

// keyOf returns the key of the resources that name an object.
func keyOf(kind string, o client.Object) string {
	return objectKey(kind, o.GetNamespace(), o.GetName())
}
