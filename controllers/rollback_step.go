package controllers

import (
	"context"
	"errors"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/supply/store"
)

// rollBackTo returns to the revision that the resource names.
func (r *Reconciler) rollBackTo(ctx context.Context, provider v1alpha2.Provider, revision int) error {
	g := r.rollbackGoal(provider, revision)
	if err := r.livesWithCRDs(ctx, provider, g, revision); err != nil {
		return err
	}

	return r.reach(ctx, provider, g, func() error { return nil })
}

// livesWithCRDs makes sure that the managers of a revision can work with the CRDs, which never go
// back. Whether the revision exists is not asked here, and one whose chart is no longer stored, or
// that another program made, is taken at its word.
func (r *Reconciler) livesWithCRDs(ctx context.Context, provider v1alpha2.Provider, g goal, revision int) error {
	observed, err := r.Releases.Observe(ctx, g.namespace, g.name)
	if err != nil {
		return &installError{err}
	}

	to, exists := observed.Find(revision)
	if newest, _ := observed.Newest(); !exists || to.ChartDigest == "" || newest.Digest == g.digest {
		return nil
	}

	stored, err := r.Charts.Store.Find(
		ctx,
		store.FindOptions{Namespace: g.namespace, Provider: v1alpha2.Label(provider), Version: to.Version, PreferDigest: to.ChartDigest},
	)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case err != nil:
		return err
	case stored.Digest != to.ChartDigest:
		return nil
	}

	plan, err := r.CRDs.Plan(ctx, r.crdsRequest(provider, stored.Chart))
	if err != nil {
		return &installError{err}
	}

	if err := r.CRDs.Suffices(ctx, plan); err != nil {
		return &installError{err}
	}

	return nil
}
