package controllers

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"time"
	"weak"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/chartgen/supply/store"
	"github.com/capstan-project/capstan/controllers/fetch"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/values"
)

// Charts finds the chart of a release: in memory, in the store, or made anew from the source and
// stored.
type Charts struct {
	Sources *fetch.Resolver
	Store   store.Store
	Metrics *metrics.Recorder
	// Events tells of charts that could not be shared; nil where charts are not.
	Events events.EventRecorder

	building sync.Mutex
	// known are the charts of providers as they were last seen: providerID -> *providerChart.
	known sync.Map
	// shared are the charts in memory, by their digest: digest -> weak.Pointer[chart.Chart].
	shared sync.Map
}

// providerChart is what a reconcile needs of a chart.
type providerChart struct {
	*store.Stored
	// fetched is the source as it was read just now; empty when the chart was in the store.
	fetched string
	// schema is what the chart lets one set.
	schema *values.Schema
	// from is what it is the chart of.
	from releaseID
}

// providerID identifies a provider's resource.
type providerID struct {
	client.ObjectKey
	label string
}

func idOf(provider v1alpha2.Provider) providerID {
	return providerID{client.ObjectKeyFromObject(provider), v1alpha2.Label(provider)}
}

// releaseID identifies the bytes behind a release of a source without reading them.
type releaseID struct {
	source.Version
	digest string // that the resource asks for
}

// find gives the chart of a release. Nothing is read or made when the same bytes were seen before,
// and nothing is fetched from where a release cannot change when its chart is in the store, unless
// anew asks for it.
func (c *Charts) find(
	ctx context.Context,
	provider v1alpha2.Provider,
	from source.Source,
	release source.Version,
	anew bool,
) (*providerChart, error) {
	id, wanted := idOf(provider), releaseID{release, fetch.Digest(provider)}
	if known, ok := c.known.Load(id); ok && known.(*providerChart).from == wanted && release.Fingerprint != "" && !anew {
		return known.(*providerChart), nil
	}

	pc, err := c.load(ctx, provider, from, release, anew)
	if err != nil {
		return nil, err
	}

	if pc.schema, err = values.ReadSchema(pc.Chart); err != nil {
		return nil, err
	}

	c.Metrics.ChartStored(provider, pc.Size)
	pc.from, pc.Chart = wanted, c.share(pc.Digest, pc.Chart)
	c.known.Store(id, pc)

	return pc, nil
}

// load takes the chart from the store, or makes it of what the source has. While the source is out
// of reach, a stored chart does even where another is asked for: anew, or in this program's format.
func (c *Charts) load(
	ctx context.Context,
	provider v1alpha2.Provider,
	from source.Source,
	release source.Version,
	anew bool,
) (*providerChart, error) {
	key := store.Key{
		Namespace: provider.GetNamespace(),
		Provider:  v1alpha2.Label(provider),
		Version:   release.Name,
		Origin:    release.Origin,
	}
	if release.Origin == "" {
		return c.fetch(ctx, provider, from, release, key)
	}

	if digest := fetch.Digest(provider); digest != "" {
		key.Origin += "@" + digest
	}

	query := store.FindOptions{Namespace: key.Namespace, Provider: key.Provider, Version: key.Version, Origin: key.Origin}
	if current := provider.GetStatus().Chart; current != nil {
		query.PreferDigest = current.Digest
	}

	stored, err := c.Store.Find(ctx, query)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, &storeError{err}
	}

	if err == nil && !anew &&
		(stored.Prebuilt || stored.Chart.Metadata.Annotations[chartgen.AnnotationChartgenVersion] == chartgen.Version) {
		return &providerChart{Stored: stored}, nil
	}

	fetched, failed := c.fetch(ctx, provider, from, release, key)
	if failed != nil && err == nil {
		ctrl.LoggerFrom(ctx).
			Info("the stored chart is used: the source cannot be asked", "chart", stored.Reference, "error", failed.Error())

		return &providerChart{Stored: stored}, nil
	}

	return fetched, failed
}

// sourceOf is the kind of a provider's source; without one the releases of a project are taken.
func sourceOf(fetch *v1alpha2.FetchConfiguration) metrics.Source {
	switch {
	case fetch == nil, fetch.URL != "":
		return metrics.SourceURL
	case fetch.OCI != "":
		return metrics.SourceOCI
	case fetch.HTTP != "":
		return metrics.SourceHTTP
	case fetch.Directory != "":
		return metrics.SourceDirectory
	case fetch.Image != "":
		return metrics.SourceImage
	}

	return metrics.SourceConfigMap
}

// size is how much was read of a source.
func size(b *bundle.Bundle) int {
	if b == nil {
		return 0
	}

	return len(b.Components) + len(b.Metadata)
}

// fetch reads the release from its source and finds or makes the chart of what is there, unless it
// is a chart itself.
func (c *Charts) fetch(
	ctx context.Context,
	provider v1alpha2.Provider,
	from source.Source,
	release source.Version,
	key store.Key,
) (*providerChart, error) {
	if charts, ok := from.(source.ChartSource); ok {
		ready, err := charts.Chart(ctx, release)
		if err != nil {
			return nil, err
		}

		if ready != nil {
			stored, err := c.keep(ctx, provider, key, ready.Chart)
			return &providerChart{Stored: stored, fetched: ready.Reference.String()}, err
		}
	}

	b, err := from.Fetch(ctx, release)
	c.Metrics.Fetched(sourceOf(provider.GetSpec().FetchConfig), size(b), err)

	if err != nil {
		return nil, err
	}

	if err := b.CheckDigest(fetch.Digest(provider)); err != nil {
		return nil, err
	}

	stored, err := c.build(ctx, provider, key, b)

	return &providerChart{Stored: stored, fetched: b.Source}, err
}

// build makes the chart of components, unless the store has it.
func (c *Charts) build(
	ctx context.Context,
	provider v1alpha2.Provider,
	key store.Key,
	b *bundle.Bundle,
) (*store.Stored, error) {
	key.ContentID = chartgen.ContentID(b)

	stored, err := c.Store.Get(ctx, key)
	switch {
	case err == nil:
		return stored, nil
	case !errors.Is(err, store.ErrNotFound):
		return nil, &storeError{err}
	}
	// One at a time: it is work for the processor alone, takes ten times the components' size in
	// memory, and whoever came first, core mostly, is not held up by those that wait for it.
	c.building.Lock()
	defer c.building.Unlock()

	built, err := chartgen.Build(b)
	if err != nil {
		return nil, err
	}

	return c.put(ctx, provider, key, built)
}

// keep stores a chart that was fetched as it is.
func (c *Charts) keep(
	ctx context.Context,
	provider v1alpha2.Provider,
	key store.Key,
	ready *chart.Chart,
) (*store.Stored, error) {
	var err error
	if key.ContentID, err = store.PrebuiltContentID(ready); err != nil {
		return nil, err
	}

	return c.put(ctx, provider, key, ready)
}

// pruneAge keeps charts that have just been made, of which no status tells yet.
const pruneAge = 10 * time.Minute

// put stores a chart, and forgets those that are neither in use nor in the release's history.
func (c *Charts) put(
	ctx context.Context,
	provider v1alpha2.Provider,
	key store.Key,
	made *chart.Chart,
) (*store.Stored, error) {
	stored, err := c.Store.Put(ctx, key, made)
	if err != nil {
		return nil, &storeError{err}
	}

	if stored.PushErr != nil {
		c.Events.Eventf(
			provider,
			nil,
			corev1.EventTypeWarning,
			v1alpha2.ChartStoreErrorReason,
			"Push",
			"The chart is in the cluster and could not be pushed to the chart repository, which is tried again: %s",
			stored.PushErr,
		)
	}

	status, keep := provider.GetStatus(), []string{stored.Digest}
	if status.Chart != nil {
		keep = append(keep, status.Chart.Digest)
	}

	for _, revision := range status.History {
		keep = append(keep, revision.ChartDigest)
	}

	if err := c.Store.Prune(ctx, key.Namespace, key.Provider, keep, time.Now().Add(-pruneAge)); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "old charts stay; they are looked at again when the next is stored")
	}

	return stored, nil
}

// Delete forgets all charts of a provider, in the store and in memory.
func (c *Charts) Delete(ctx context.Context, provider v1alpha2.Provider) error {
	c.known.Delete(idOf(provider))
	return c.Store.Delete(ctx, provider.GetNamespace(), v1alpha2.Label(provider))
}

// share gives the chart of the same digest that is in memory already, or this one: a provider that
// is installed into a hundred clusters is in memory once. Charts do not change.
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

		c.shared.CompareAndDelete(digest, other) // nobody has it any more, and its cleanup is still to come
	}
}

// annotation reads one of the chart's annotations.
func (c *providerChart) annotation(name string) string { return c.Chart.Metadata.Annotations[name] }

// plain says that the chart is somebody's own Helm chart, which knows nothing of variables and
// contracts.
func (c *providerChart) plain() bool { return c.annotation(chartgen.AnnotationContentID) == "" }

// contract is the Cluster API contract of the chart's version; empty when a plain chart does not
// say.
func (c *providerChart) contract() string { return c.annotation(chartgen.AnnotationContract) }

// requiredKinds are the kinds that others must serve.
func (c *providerChart) requiredKinds() []string {
	return strings.FieldsFunc(c.annotation(chartgen.AnnotationRequiredKinds), func(r rune) bool { return r == ',' })
}

// source is where the chart came from. One that was in the store came from where the status says,
// or its own annotation; but that of a chart which was taken as it is tells of an earlier source.
func (c *providerChart) source(before *v1alpha2.ChartStatus) string {
	switch {
	case c.fetched != "":
		return c.fetched
	case before != nil && before.Digest == c.Digest && before.Source != "":
		return before.Source
	case c.Prebuilt:
		return ""
	}

	return c.annotation(chartgen.AnnotationSource)
}

// status is the chart as the resource's status tells it; before is what it told so far.
func (c *providerChart) status(before *v1alpha2.ChartStatus) *v1alpha2.ChartStatus {
	return &v1alpha2.ChartStatus{
		Name:      c.Chart.Metadata.Name,
		Version:   c.Chart.Metadata.Version,
		Reference: c.Reference,
		Digest:    c.Digest,
		Source:    c.source(before),
		Plain:     c.plain(),
	}
}
