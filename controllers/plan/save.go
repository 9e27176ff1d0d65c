package plan

import (
	"context"
	"errors"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/export"
)

// pruneAge protects charts that were just stored and that no status refers to yet.
const pruneAge = 10 * time.Minute

// Missed is why something that the provider does not need could not be stored with its chart. Its fields are nil
// otherwise.
type Missed struct {
	// Push is why the chart could not be pushed to the chart repository.
	Push error
	// Components is why its components are not in a ConfigMap for other programs.
	Components error
}

// Save stores a chart that was built, and removes those that are neither in use nor in the release's
// history. If the chart was built from components that were fetched just now, it stores these for other programs, if
// that is asked for. The error is a *StoreError, after which the resource must not record the chart.
func (c *Charts) Save(ctx context.Context, provider v1alpha2.Provider, found *Chart) (missed Missed, err error) {
	if found.unsaved {
		if missed.Push, err = c.put(ctx, provider, found); err != nil {
			return missed, &StoreError{err}
		}
	}

	if found.components != nil {
		if missed.Components, err = c.writeComponents(ctx, provider, found); err != nil {
			return missed, &StoreError{err}
		}
	}

	return missed, nil
}

// put stores a chart, and removes old ones. It returns why the chart could not be pushed to the chart repository, if
// that failed.
func (c *Charts) put(ctx context.Context, provider v1alpha2.Provider, found *Chart) (unpushed, err error) {
	stored, err := c.Store.Put(ctx, found.key, found.Chart)
	if err != nil {
		return nil, err
	}

	found.Reference = stored.Reference
	found.unsaved = false

	keep := inUse(provider.GetStatus())
	if len(keep) == 0 {
		return stored.PushErr, nil // it is the provider's first chart
	}

	keep = append(keep, stored.Digest)
	label := v1alpha2.Label(provider)

	if err := c.Store.Prune(ctx, provider.GetNamespace(), label, keep, c.Clock.Now().Add(-pruneAge)); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot remove old charts; they are removed when the next one is stored")
	}

	return stored.PushErr, nil
}

// writeComponents writes the components that a chart was built from into their ConfigMap. It returns why they never
// can be, or an error after which the next Save tries again.
func (c *Charts) writeComponents(ctx context.Context, provider v1alpha2.Provider, found *Chart) (refused, err error) {
	err = c.Components.Write(ctx, provider, found.components)
	if err != nil && !errors.As(err, new(*export.RefusedError)) {
		return nil, fmt.Errorf("store the components of %s: %w", v1alpha2.Label(provider), err)
	}

	found.components = nil

	return err, nil
}
