package controllers

import (
	"context"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/release"
)

// remoteWatches do for remote clusters, which come and go, what the controllers' own watches do for
// the local one: what happens there to CRDs and to Helm's records brings the resources back that it
// concerns.
type remoteWatches struct {
	client.Reader
	wake health.Wake
}

func (w *remoteWatches) watch(ctx context.Context, cluster *clusters.Cluster) error {
	definitions, err := cluster.Definitions.GetInformer(
		ctx,
		&apiextensionsv1.CustomResourceDefinition{},
		cache.BlockUntilSynced(false),
	)
	if err != nil {
		return err
	}

	concerned := cluster.OwnTarget().CRDs.Concerned

	if err := w.handle(ctx, definitions, w.definitionChanged, func(p v1alpha2.Provider, o client.Object) bool {
		return slices.Contains(concerned(o), v1alpha2.Label(p))
	}); err != nil {
		return err
	}

	history, err := cluster.History.GetInformer(ctx, secretMetadata(), cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}

	return w.handle(ctx, history, w.historyChanged, isRelease)
}

// handle wakes, of the resources for remote clusters, those for which want is true of an object
// that has changed.
func (w *remoteWatches) handle(
	ctx context.Context,
	informer cache.Informer,
	changed func(before, now client.Object) bool,
	want func(v1alpha2.Provider, client.Object) bool,
) error {
	seen := func(before, now any) {
		if unknown, ok := now.(toolscache.DeletedFinalStateUnknown); ok {
			now = unknown.Obj
		}

		object, _ := now.(client.Object)

		former, _ := before.(client.Object)
		if object != nil && changed(former, object) {
			w.wakeAll(ctx, func(p v1alpha2.Provider) bool { return want(p, object) })
		}
	}
	_, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(now any) { seen(nil, now) },
		UpdateFunc: seen,
		DeleteFunc: func(last any) { seen(nil, last) },
	})

	return err
}

func (w *remoteWatches) wakeAll(ctx context.Context, want func(v1alpha2.Provider) bool) {
	for _, t := range v1alpha2.ProviderTypes() {
		remote, err := listed(ctx, w, t, keysField, isRemote)
		if err != nil {
			continue // from the cache: only when the operator ends
		}

		for _, p := range remote {
			if want(p) {
				w.wake(v1alpha2.Label(p), p.GetNamespace(), 0)
			}
		}
	}
}

func (w *remoteWatches) definitionChanged(before, now client.Object) bool {
	former, ok := before.(*apiextensionsv1.CustomResourceDefinition)
	return !ok || !crds.Same(former, now.(*apiextensionsv1.CustomResourceDefinition))
}

func (w *remoteWatches) historyChanged(_, now client.Object) bool {
	return release.ForeignWork(now.GetLabels()) || release.Current(now.GetLabels())
}
