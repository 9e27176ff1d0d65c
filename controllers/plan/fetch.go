package plan

import (
	"context"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/chartgen/supply/store"
	"github.com/capstan-project/capstan/controllers/fetch"
	"github.com/capstan-project/capstan/controllers/metrics"
)

// fetch reads the version from its source and builds its chart, unless it is a chart already.
func (c *Charts) fetch(
	ctx context.Context, provider v1alpha2.Provider, from source.Source, version source.Version,
) (*Chart, error) {
	asking, cancel := context.WithTimeout(ctx, sourceTimeout)
	defer cancel()

	if artifacts, ok := from.(*source.Artifact); ok {
		published, err := artifacts.Chart(asking, version)
		if err != nil {
			return nil, err
		}

		if published != nil {
			// Of a chart that anybody may have written, only the content is used.
			built, err := c.build(func() (*chart.Chart, error) { return chartgen.Rebuild(published.Chart) })
			if err != nil {
				return nil, err
			}

			return c.newChart(built, published.Reference.String())
		}
	}

	b, err := from.Fetch(asking, version)
	c.metrics.ObserveFetch(sourceOf(from, provider.GetSpec().FetchConfig), size(b), err)

	if err != nil {
		return nil, err
	}

	if err := b.CheckDigest(fetch.Digest(provider)); err != nil {
		return nil, err
	}

	built, err := c.build(func() (*chart.Chart, error) { return chartgen.Build(b) })
	if err != nil {
		return nil, err
	}

	return c.newChart(built, b.Source)
}

// build builds a chart, one at a time: a build takes much memory, and the first one, usually core's, must not be slowed
// down by those that wait for it.
func (c *Charts) build(build func() (*chart.Chart, error)) (*chart.Chart, error) {
	c.building.Lock()
	defer c.building.Unlock()

	return build()
}

// newChart returns a chart that was just fetched.
func (c *Charts) newChart(fetched *chart.Chart, from string) (*Chart, error) {
	stored, err := store.New(fetched)
	if err != nil {
		return nil, err
	}

	found, err := c.share(stored)

	return &Chart{content: found, fetched: from, unsaved: true}, err
}

// sourceOf returns the kind of a provider's source for the metrics.
func sourceOf(from source.Source, fetch *v1alpha2.FetchConfiguration) metrics.Source {
	if _, ok := from.(*source.Artifact); ok {
		return metrics.SourceOCI
	}

	switch {
	case fetch == nil, fetch.URL != "":
		return metrics.SourceURL
	case fetch.HTTP != "":
		return metrics.SourceHTTP
	case fetch.Directory != "":
		return metrics.SourceDirectory
	case fetch.Image != "":
		return metrics.SourceImage
	}

	return metrics.SourceConfigMap
}

// size returns how many bytes were read from a source.
func size(b *bundle.Bundle) int {
	if b == nil {
		return 0
	}

	return len(b.Components) + len(b.Metadata)
}
