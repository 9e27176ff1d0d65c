package plan

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Save stores a chart that was fetched, and removes the charts that no resource uses any more. The error is a
// *problem.Error.
func (c *Charts) Save(ctx context.Context, provider v1alpha2.Provider, found *Chart) error {
	if !found.unsaved {
		return nil
	}

	c.storing.Lock()
	defer c.storing.Unlock()

	named := chartsOf(provider.GetStatus(), "")
	exists := slices.Contains(named, found.Digest)

	if err := c.store.Put(ctx, found.Stored, provider.GetNamespace(), originOf(found.from), exists); err != nil {
		return StoreFailed(err)
	}

	found.unsaved = false
	c.remember(provider, found)

	if c.replaces(provider, named, found.Digest) {
		c.collect(ctx, provider, named)
	}

	return nil
}

// replaces reports whether a chart that was just stored may leave another one of the provider unused: not the first
// one, nor one that its status names. The one before is not in the status if it could not be planned.
func (c *Charts) replaces(provider v1alpha2.Provider, named []string, digest string) bool {
	var last string

	c.note(provider, func(p *chartsOfProvider) { last, p.saved = p.saved, digest })

	if last != "" && last != digest {
		return true
	}

	return len(named) > 0 && !slices.Contains(named, digest)
}

// Collect forgets a resource that is gone, and removes the charts that no other resource uses.
func (c *Charts) Collect(ctx context.Context, gone v1alpha2.Provider) {
	c.storing.Lock()
	defer c.storing.Unlock()

	c.Forget(gone)
	c.collect(ctx, gone, nil)
}

// Forget removes what is in memory of a provider.
func (c *Charts) Forget(provider v1alpha2.Provider) {
	c.mu.Lock()
	defer c.mu.Unlock()

	delete(c.ofProvider, idOf(provider))
}

// collect deletes the charts that no resource uses. Those of a provider are given.
func (c *Charts) collect(ctx context.Context, provider v1alpha2.Provider, own []string) {
	err := c.store.Collect(ctx, func() (sets.Set[string], error) {
		others, err := c.usedByOthers(ctx, provider)

		return others.Insert(own...), err
	})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot remove unused charts; they are removed when the next one is stored")
	}
}

// usedByOthers returns the digests of the charts that resources are about to name in their status, and of those that
// all but one name already.
func (c *Charts) usedByOthers(ctx context.Context, provider v1alpha2.Provider) (sets.Set[string], error) {
	digests := sets.New[string]()

	c.mu.Lock()
	for _, remembered := range c.ofProvider {
		digests.Insert(remembered.found.digest)
	}
	c.mu.Unlock()

	for _, t := range v1alpha2.ProviderTypes() {
		list := t.NewList()
		if err := c.providers.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return digests, err
		}

		for _, p := range list.GetItems() {
			if p.GetUID() != provider.GetUID() {
				digests.Insert(chartsOf(p.GetStatus(), "")...)
			}
		}
	}

	return digests, nil
}
