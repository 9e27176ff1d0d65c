package plan

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"weak"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/chartgen/supply/store"
	"github.com/capstan-project/capstan/controllers/fetch"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/values"
)

// Charts finds the charts of providers: in memory, in the store, or by building them from their
// source. Finding a chart writes nothing; Save stores one that was built. If each reconcile read its chart from the
// store, an installation of five providers would take a third more requests and CPU time.
type Charts struct {
	Store   *store.Cluster
	Metrics *metrics.Recorder

	// known are the charts of providers when they were last found: providerID -> *Chart.
	known sync.Map
	// patched are the CRDs of the providers' charts, as their resources patch them: providerID -> patchedCRDs.
	patched sync.Map
	// shared are the charts in memory: digest -> weak.Pointer[chart.Chart].
	shared sync.Map
}

// providerID identifies a provider's resource.
type providerID struct {
	client.ObjectKey
	label string
}

func idOf(provider v1alpha2.Provider) providerID {
	return providerID{client.ObjectKeyFromObject(provider), v1alpha2.Label(provider)}
}

// versionID identifies the content behind a version of a source without reading it.
type versionID struct {
	source.Version
	digest string // required by the resource
}

// StoreError reports that charts cannot be read from or written to the store.
type StoreError struct{ Err error }

func (e *StoreError) Error() string { return e.Err.Error() }

// Unwrap returns the store's error.
func (e *StoreError) Unwrap() error { return e.Err }

// Find returns the chart of a version. Nothing is read when the same content was found before, and
// nothing is fetched from where a version cannot change when its chart is in the store, unless
// refresh asks for that.
func (c *Charts) Find(
	ctx context.Context, provider v1alpha2.Provider, from source.Source, version source.Version, refresh bool,
) (*Chart, error) {
	id := idOf(provider)
	wanted := versionID{version, fetch.Digest(provider)}

	if known, ok := c.known.Load(id); ok && version.Fingerprint != "" && !refresh {
		found := known.(*Chart)
		if found.from == wanted && !found.unsaved {
			return found, nil
		}
	}

	found, err := c.load(ctx, provider, from, version, refresh)
	if err != nil {
		c.known.Delete(id) // it may have become untrusted

		return nil, err
	}

	if found.Schema, err = values.ReadSchema(found.Chart); err != nil {
		return nil, err
	}

	found.from = wanted
	found.Chart = c.share(found.Digest, found.Chart)

	c.known.Store(id, found)
	c.Metrics.SetChartSize(provider, found.Size)

	return found, nil
}

// load reads the chart from the store, or builds it from its source. While the source is out of
// reach, a stored chart is used even where another is asked for: refreshed, or in the current format.
func (c *Charts) load(
	ctx context.Context, provider v1alpha2.Provider, from source.Source, version source.Version, refresh bool,
) (*Chart, error) {
	key := store.Key{
		Namespace: provider.GetNamespace(),
		Provider:  v1alpha2.Label(provider),
		Version:   version.Name,
		Origin:    version.Origin,
	}
	if version.Origin == "" {
		return c.fetch(ctx, provider, from, version, key)
	}

	if digest := fetch.Digest(provider); digest != "" {
		key.Origin += "@" + digest
	}

	stored, err := c.recorded(ctx, provider, key)
	if err != nil {
		return nil, err
	}

	if stored != nil && !refresh && isCurrent(stored.Stored) {
		return stored, nil
	}

	fetched, err := c.fetch(ctx, provider, from, version, key)
	if stored != nil && (source.IsUnavailable(err) || !refresh && source.IsNotFound(err)) {
		stored.Outdated = err

		return stored, nil
	}

	return fetched, err
}

// recorded returns the stored chart of a key that the resource's status records; nil if there is none.
func (c *Charts) recorded(ctx context.Context, provider v1alpha2.Provider, key store.Key) (*Chart, error) {
	for _, record := range recordsOf(provider, key) {
		stored, err := c.Store.Find(ctx, store.FindOptions{
			Namespace: key.Namespace, Provider: key.Provider, Version: key.Version, Digest: record.Digest,
		})
		if errors.Is(err, store.ErrNotFound) {
			continue
		}

		if err != nil {
			return nil, &StoreError{err}
		}

		return &Chart{Stored: stored, key: key}, nil
	}

	return nil, nil
}

// isCurrent reports whether a stored chart has the format that this version of chartgen writes.
func isCurrent(stored *store.Stored) bool {
	return stored.Prebuilt || stored.Chart.Metadata.Annotations[chartgen.AnnotationChartgenVersion] == chartgen.Version
}

// Installed returns the stored chart with a digest, of a version that was installed before;
// store.ErrNotFound when it is no longer stored. The digest may come from Helm's records, which prove
// nothing, so the status must record it as well.
func (c *Charts) Installed(
	ctx context.Context, provider v1alpha2.Provider, version, digest string,
) (*store.Stored, error) {
	if known, ok := c.known.Load(idOf(provider)); ok {
		if found := known.(*Chart); found.Digest == digest {
			stored := *found.Stored
			stored.Chart = found.Chart

			return &stored, nil
		}
	}

	label := v1alpha2.Label(provider)
	if !isRecorded(provider, digest) {
		return nil, fmt.Errorf("chart %s of %s %s: %w", digest, label, version, store.ErrNotFound)
	}

	stored, err := c.Store.Find(ctx, store.FindOptions{
		Namespace: provider.GetNamespace(), Provider: label, Version: version, Digest: digest,
	})
	if errors.Is(err, store.ErrNotFound) {
		return nil, err
	}

	if err != nil {
		return nil, &StoreError{err}
	}

	stored.Chart = c.share(stored.Digest, stored.Chart)

	return stored, nil
}

// Delete removes all charts of a provider from the store and from memory.
func (c *Charts) Delete(ctx context.Context, provider v1alpha2.Provider) error {
	c.Forget(provider)
	return c.Store.Delete(ctx, provider.GetNamespace(), v1alpha2.Label(provider))
}

// Forget removes the charts of a provider from memory.
func (c *Charts) Forget(provider v1alpha2.Provider) {
	c.known.Delete(idOf(provider))
	c.patched.Delete(idOf(provider))
}

// share returns the chart of the same digest that is in memory already, or the given one: a provider
// that is installed into a hundred clusters is in memory once, with 1.5 MiB instead of 150. Charts are never modified.
func (c *Charts) share(digest string, read *chart.Chart) *chart.Chart {
	own := weak.Make(read)

	for {
		other, found := c.shared.LoadOrStore(digest, own)
		if !found {
			runtime.AddCleanup(read, func(digest string) { c.shared.CompareAndDelete(digest, own) }, digest)
			return read
		}

		if known := other.(weak.Pointer[chart.Chart]).Value(); known != nil {
			return known
		}

		// The other one was collected, and its cleanup has not run yet.
		c.shared.CompareAndDelete(digest, other)
	}
}
