package watch

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/preflight"
)

// Definitions watches CRDs and enqueues the providers that a change of one affects.
func (k Kind) Definitions(definitions cache.Cache, applier *crds.Applier) source.Source {
	type crd = *apiextensionsv1.CustomResourceDefinition

	find := func(ctx context.Context, before, now, changed crd) []reconcile.Request {
		var names []string

		for _, label := range applier.AffectedProviders(ctx, before, now) {
			if t, name := v1alpha2.ParseLabel(label); t == k.Type {
				names = append(names, name)
			}
		}

		return k.enqueue(preflight.NameField, func(client.Object) []string { return names }, nil)(ctx, changed)
	}

	return source.Kind(definitions, &apiextensionsv1.CustomResourceDefinition{}, onChange(find))
}
