package preflight

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/problem"
)

// CoreReady checks that the CoreProvider of the provider's cluster is ready, or would be if its resource did not
// ask for another version. For core itself there is nothing to check.
func (c *Checker) CoreReady(ctx context.Context, provider v1alpha2.Provider) error {
	core, err := c.needed(ctx, provider)
	if err != nil || core == nil {
		return err
	}

	standing := StandingOf(core)
	if standing.Ready || standing.Keeps {
		return nil
	}

	return problem.Await(v1alpha2.WaitingForCoreProviderReadyReason,
		"waiting for CoreProvider %s/%s to become ready", core.GetNamespace(), core.GetName())
}

// needed returns the CoreProvider that a provider needs; nil for core itself. The error is a *problem.Error if there
// is none.
func (c *Checker) needed(ctx context.Context, provider v1alpha2.Provider) (v1alpha2.Provider, error) {
	if provider.ProviderType() == v1alpha2.CoreProviderType {
		return nil, nil
	}

	core, err := c.Core(ctx, provider)
	if core != nil || err != nil {
		return core, err
	}

	return nil, problem.Await(v1alpha2.WaitingForCoreProviderReadyReason,
		"waiting for the CoreProvider %s, which exists in no namespace; create it", v1alpha2.CoreProviderName)
}

// Core returns the CoreProvider of the provider's cluster: the one that has installed core, or else the oldest,
// preferably one that is not being deleted. It is nil if there is none, and must not be changed.
func (c *Checker) Core(ctx context.Context, provider v1alpha2.Provider) (v1alpha2.Provider, error) {
	list := &v1alpha2.CoreProviderList{}
	if err := c.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}

	cores := slices.DeleteFunc(list.GetItems(), func(p v1alpha2.Provider) bool {
		return p.GetName() != v1alpha2.CoreProviderName || !c.Cluster.Same(p, provider)
	})

	return preferred(cores), nil
}

// preferred returns which of several resources for the same provider counts: the one that has installed it, before
// that the oldest, and one that is being deleted only if there is no other; nil if there is none.
func preferred(all []v1alpha2.Provider) v1alpha2.Provider {
	for _, matches := range []func(v1alpha2.Provider) bool{isInstalled, stays, anyProvider} {
		if p := oldest(all, matches); p != nil {
			return p
		}
	}

	return nil
}

// stays reports whether a resource is not being deleted.
func stays(p v1alpha2.Provider) bool { return !StandingOf(p).Deleted }

func anyProvider(v1alpha2.Provider) bool { return true }
