package plan

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// pruneAge protects charts that were just stored and that no status refers to yet.
const pruneAge = 10 * time.Minute

// Save stores a chart that was built, and removes those that are neither in use nor in the release's
// history. The error is a *StoreError, after which the resource must not record the chart.
func (c *Charts) Save(ctx context.Context, provider v1alpha2.Provider, found *Chart) error {
	if !found.unsaved {
		return nil
	}

	stored, err := c.Store.Put(ctx, found.key, found.Chart)
	if err != nil {
		return &StoreError{err}
	}

	found.Reference = stored.Reference
	found.unsaved = false

	keep := inUse(provider.GetStatus())
	if len(keep) == 0 {
		return nil // it is the provider's first chart
	}

	keep = append(keep, stored.Digest)
	label := v1alpha2.Label(provider)

	if err := c.Store.Prune(ctx, provider.GetNamespace(), label, keep, time.Now().Add(-pruneAge)); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot remove old charts; they are removed when the next one is stored")
	}

	return nil
}
