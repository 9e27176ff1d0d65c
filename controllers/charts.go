package controllers

import (
	"context"
	"errors"
	"strings"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/chartgen/store"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/values"
)

// Charts finds the chart of a release: in memory, in the store, or made anew from the source and stored.
type Charts struct {
	// Metadata reads the metadata of ConfigMaps from the watch, Reader reads from the API server itself.
	Metadata, Reader client.Reader
	Store            store.Store
	Metrics          *metrics.Recorder

	building sync.Mutex
	// known are the charts of releases as they were last seen: releaseID -> *providerChart.
	known sync.Map
}

// providerChart is what a reconcile needs of a chart.
type providerChart struct {
	*store.Stored
	// schema is what the chart lets one set.
	schema *values.Schema
}

// releaseID identifies the bytes behind a release of a source without reading them.
type releaseID struct {
	provider client.ObjectKey
	label    string
	release  source.Release
}

// fetchConfigError says that spec.fetchConfig does not lead to a source.
type fetchConfigError struct{ message string }

func (e *fetchConfigError) Error() string { return e.message }

// Source is where a provider's releases come from.
func (c *Charts) Source(provider v1alpha2.Provider) (source.Source, error) {
	fetch := provider.GetSpec().FetchConfig
	if fetch == nil || fetch.Selector == nil {
		return nil, &fetchConfigError{"spec.fetchConfig.selector is not set: this version of Capstan takes components from ConfigMaps only, so set it to labels that match them"}
	}
	return &source.ConfigMaps{
		Metadata: c.Metadata, Reader: c.Reader, Namespace: provider.GetNamespace(), Selector: fetch.Selector,
		Provider: source.Provider(provider.ProviderType(), provider.GetName()),
	}, nil
}

// find gives the chart of a release. Nothing is read or made when the same bytes were seen before.
func (c *Charts) find(ctx context.Context, provider v1alpha2.Provider, from source.Source, release source.Release) (*providerChart, error) {
	id := releaseID{client.ObjectKeyFromObject(provider), v1alpha2.Label(provider), release}
	if known, ok := c.known.Load(id); ok && release.Fingerprint != "" {
		return known.(*providerChart), nil
	}
	stored, err := c.loadOrBuild(ctx, provider, from, release)
	if err != nil {
		return nil, err
	}
	schema, err := values.ReadSchema(stored.Chart)
	if err != nil {
		return nil, err
	}
	c.Metrics.ChartStored(provider, stored.Size)
	pc := &providerChart{Stored: stored, schema: schema}
	c.forget(id.provider, id.label)
	c.known.Store(id, pc)
	return pc, nil
}

// size is how much was read of a source.
func size(b *bundle.Bundle) int {
	if b == nil {
		return 0
	}
	return len(b.Components) + len(b.Metadata)
}

func (c *Charts) loadOrBuild(ctx context.Context, provider v1alpha2.Provider, from source.Source, release source.Release) (*store.Stored, error) {
	b, err := from.Fetch(ctx, release)
	c.Metrics.Fetched(metrics.SourceConfigMap, size(b), err)
	if err != nil {
		return nil, err
	}
	key := store.Key{Namespace: provider.GetNamespace(), Provider: b.Provider.Label, Version: b.Version, ContentID: chartgen.ContentID(b)}
	stored, err := c.Store.Get(ctx, key)
	if !errors.Is(err, store.ErrNotFound) {
		return stored, err
	}
	// One at a time: it is work for the processor alone, takes ten times the components' size in memory, and whoever came
	// first, core mostly, is not held up by those that wait for it.
	c.building.Lock()
	defer c.building.Unlock()
	built, err := chartgen.Build(b)
	if err != nil {
		return nil, err
	}
	return c.Store.Put(ctx, key, built)
}

// Delete forgets all charts of a provider, in the store and in memory.
func (c *Charts) Delete(ctx context.Context, provider v1alpha2.Provider) error {
	c.forget(client.ObjectKeyFromObject(provider), v1alpha2.Label(provider))
	return c.Store.Delete(ctx, provider.GetNamespace(), v1alpha2.Label(provider))
}

// forget drops a provider's charts from memory: one a provider is enough.
func (c *Charts) forget(provider client.ObjectKey, label string) {
	c.known.Range(func(id, _ any) bool {
		if id := id.(releaseID); id.provider == provider && id.label == label {
			c.known.Delete(id)
		}
		return true
	})
}

// annotation reads one of the chart's annotations.
func (c *providerChart) annotation(name string) string { return c.Chart.Metadata.Annotations[name] }

// contract is the Cluster API contract of the chart's version.
func (c *providerChart) contract() string { return c.annotation(chartgen.AnnotationContract) }

// requiredKinds are the kinds that others must serve.
func (c *providerChart) requiredKinds() []string {
	return strings.FieldsFunc(c.annotation(chartgen.AnnotationRequiredKinds), func(r rune) bool { return r == ',' })
}

// status is the chart as the resource's status tells it.
func (c *providerChart) status() *v1alpha2.ChartStatus {
	return &v1alpha2.ChartStatus{Name: c.Chart.Metadata.Name, Version: c.Chart.Metadata.Version, Reference: c.Reference, Digest: c.Digest}
}
