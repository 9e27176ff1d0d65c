package watch

import (
	"context"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/namespaces"
)

// FollowProviders makes namespaces be watched as long as provider resources are in them. The resources of other
// operators count as well: their releases matter to the preflight checks.
func FollowProviders(ctx context.Context, providers cache.Cache, watches *namespaces.Watches) error {
	for _, t := range v1alpha2.ProviderTypes() {
		informer, err := providers.GetInformer(ctx, t.New(), cache.BlockUntilSynced(false))
		if err != nil {
			return err
		}

		follow := func(o any) {
			if p, ok := o.(v1alpha2.Provider); ok {
				watches.Follow(v1alpha2.FullName(p), p.GetNamespace())
			}
		}

		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    follow,
			UpdateFunc: func(_, now any) { follow(now) },
			DeleteFunc: func(last any) {
				if unknown, ok := last.(toolscache.DeletedFinalStateUnknown); ok {
					last = unknown.Obj
				}

				if p, ok := last.(v1alpha2.Provider); ok {
					watches.Follow(v1alpha2.FullName(p))
				}
			},
		})
		if err != nil {
			return err
		}
	}

	return nil
}
