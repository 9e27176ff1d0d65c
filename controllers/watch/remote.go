package watch

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
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// Remote does for remote clusters, which come and go, what the controllers' own watches do for the
// local one: it wakes the resources that changes of CRDs and of Helm's records concern.
type Remote struct {
	// Cache reads provider resources, by the indexes of IndexProviders.
	Cache client.Reader
	Wake  health.Wake
}

// Watch adds the event handlers to a cluster that is about to start.
func (r *Remote) Watch(ctx context.Context, cluster *clusters.Cluster) error {
	definitions, err := cluster.Definitions.GetInformer(
		ctx, &apiextensionsv1.CustomResourceDefinition{}, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}

	concerned := cluster.OwnTarget().CRDs.AffectedProviders
	concerns := func(p v1alpha2.Provider, crd client.Object) bool {
		return slices.Contains(concerned(crd.(*apiextensionsv1.CustomResourceDefinition)), v1alpha2.Label(p))
	}

	if err := r.handle(ctx, definitions, remoteDefinitionChanged, concerns); err != nil {
		return err
	}

	records, err := cluster.History.GetInformer(ctx, secretMetadata(), cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}

	return r.handle(ctx, records, remoteRecordChanged, isRelease)
}

// handle wakes those resources for remote clusters that a change of an object concerns.
func (r *Remote) handle(
	ctx context.Context,
	informer cache.Informer,
	changed func(before, now client.Object) bool,
	concerns func(v1alpha2.Provider, client.Object) bool,
) error {
	handle := func(before, now any) {
		if unknown, ok := now.(toolscache.DeletedFinalStateUnknown); ok {
			now = unknown.Obj
		}

		former, _ := before.(client.Object)

		object, ok := now.(client.Object)
		if ok && changed(former, object) {
			r.wakeAll(ctx, func(p v1alpha2.Provider) bool { return concerns(p, object) })
		}
	}

	_, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(now any) { handle(nil, now) },
		UpdateFunc: handle,
		DeleteFunc: func(last any) { handle(nil, last) },
	})

	return err
}

func (r *Remote) wakeAll(ctx context.Context, concerned func(v1alpha2.Provider) bool) {
	for _, t := range v1alpha2.ProviderTypes() {
		remote, err := list(ctx, r.Cache, t, keysField, remoteKey)
		if err != nil {
			continue // a read from the cache fails only while the operator shuts down
		}

		for _, p := range remote {
			if concerned(p) {
				r.Wake(v1alpha2.Label(p), p.GetNamespace(), 0)
			}
		}
	}
}

func remoteDefinitionChanged(before, now client.Object) bool {
	former, ok := before.(*apiextensionsv1.CustomResourceDefinition)
	return !ok || !crds.IsUnchanged(former, now.(*apiextensionsv1.CustomResourceDefinition))
}

func remoteRecordChanged(_, now client.Object) bool {
	return storage.IsChangedByOthers(now.GetLabels()) || storage.IsCurrent(now.GetLabels())
}
