package facts

import (
	"context"
	"errors"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/release/storage"
	"github.com/capstan-project/capstan/controllers/usage"
)

// Usage are the objects of a provider's kinds, which keep it from being removed.
type Usage struct {
	// Kinds that have objects or could not be read, those with the most objects first.
	Kinds []usage.Kind
	// Searched are the names of the CRDs of all kinds that were searched.
	Searched []string
	// Unseen is the number of kinds whose objects the viewer may not list, so that Kinds does not have them.
	Unseen int
}

// Usage finds the objects that keep a provider from being removed, as the removal itself does. Nothing blocks that of
// a provider without a release. Other clusters are not read.
func (r *Reader) Usage(ctx context.Context, p v1alpha2.Provider) (Usage, error) {
	if p.GetSpec().KubeConfig != nil {
		return Usage{}, nil
	}

	observed, err := r.Releases.Observe(ctx, plan.ReleaseKey(p))
	if err != nil {
		return Usage{}, err
	}

	newest, exists := observed.Newest()
	if !exists {
		return Usage{}, nil
	}

	query := usage.Query{Provider: v1alpha2.Label(p), Types: usage.ManagedTypes(p)}

	found, err := r.Finder.Find(ctx, query)
	if err != nil {
		return Usage{}, err
	}

	if found.Unused() {
		return Usage{Searched: found.Searched}, nil
	}

	// The record is large. It says which of the objects came with the provider.
	record, err := r.Releases.Read(ctx, observed.Release, newest)
	if errors.As(err, new(*storage.CorruptError)) {
		return Usage{Kinds: found.Kinds, Searched: found.Searched}, nil
	}

	if err != nil {
		return Usage{}, err
	}

	query.Own = record.Keys()

	found, err = r.Finder.Find(ctx, query)
	if err != nil {
		return Usage{}, err
	}

	return Usage{Kinds: found.Kinds, Searched: found.Searched}, nil
}
