package watch

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/preflight"
)

// Definitions watches CRDs and enqueues the providers that a change of one concerns; concerned returns their
// labels.
func (k Kind) Definitions(
	definitions cache.Cache, concerned func(*apiextensionsv1.CustomResourceDefinition) []string,
) source.Source {
	names := func(changed client.Object) []string {
		var names []string

		for _, label := range concerned(changed.(*apiextensionsv1.CustomResourceDefinition)) {
			if t, name := v1alpha2.ParseLabel(label); t == k.Type {
				names = append(names, name)
			}
		}

		return names
	}
	find := k.enqueue(preflight.NameField, names, nil)

	return source.Kind(definitions, &apiextensionsv1.CustomResourceDefinition{},
		handler.TypedEnqueueRequestsFromMapFunc(
			func(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) []reconcile.Request {
				return find(ctx, crd)
			}),
		definitionChanged)
}

// definitionChanged passes on what matters to a provider: a CRD that is served, changed or deleted.
var definitionChanged = predicate.TypedFuncs[*apiextensionsv1.CustomResourceDefinition]{
	CreateFunc: func(e event.TypedCreateEvent[*apiextensionsv1.CustomResourceDefinition]) bool {
		return crds.IsEstablished(e.Object)
	},
	UpdateFunc: func(e event.TypedUpdateEvent[*apiextensionsv1.CustomResourceDefinition]) bool {
		return !crds.IsUnchanged(e.ObjectNew, e.ObjectOld)
	},
}
