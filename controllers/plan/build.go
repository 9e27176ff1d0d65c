package plan

import (
	"context"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/limit"
	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/chartgen/supply/store"
	"github.com/capstan-project/capstan/controllers/fetch"
	"github.com/capstan-project/capstan/controllers/metrics"
)

// fetch reads the version from its source and finds or builds its chart, unless it is a chart
// already.
func (c *Charts) fetch(
	ctx context.Context, provider v1alpha2.Provider, from source.Source, version source.Version, key store.Key,
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
			rebuilt, err := chartgen.Rebuild(published.Chart)
			if err != nil {
				return nil, err
			}

			return newChart(key, rebuilt, published.Reference.String())
		}
	}

	b, err := from.Fetch(asking, version)
	c.Metrics.ObserveFetch(sourceOf(from, provider.GetSpec().FetchConfig), size(b), err)

	if err != nil {
		return nil, err
	}

	if err := b.CheckDigest(fetch.Digest(provider)); err != nil {
		return nil, err
	}

	return c.build(ctx, key, b)
}

// build generates the chart of a bundle.
func (c *Charts) build(ctx context.Context, key store.Key, b *bundle.Bundle) (*Chart, error) {
	built, err := buildInTurn(ctx, key.Namespace, b)
	if err != nil {
		return nil, err
	}

	key.ContentID = built.Metadata.Annotations[chartgen.AnnotationContentID]

	return newChart(key, built, b.Source)
}

// buildInTurn generates the chart of a bundle, one at a time and in turn among the namespaces. A build takes a
// bounded amount of memory and time, and the first one, usually core's, must not be slowed down by those that
// wait for it.
func buildInTurn(ctx context.Context, namespace string, b *bundle.Bundle) (*chart.Chart, error) {
	release, err := limit.Content.Acquire(ctx, namespace, limit.BuildMemory)
	if err != nil {
		return nil, err
	}
	defer release()

	return chartgen.Build(b)
}

// newChart returns a chart that is not in the store yet.
func newChart(key store.Key, content *chart.Chart, fetched string) (*Chart, error) {
	archive, err := content.Archive()
	if err != nil {
		return nil, err
	}

	digest := chart.Digest(archive)
	prebuilt := key.ContentID == ""

	if prebuilt {
		key.ContentID = digest
	}

	stored := &store.Stored{Chart: content, Digest: digest, Size: len(archive), Prebuilt: prebuilt}

	return &Chart{Stored: stored, fetched: fetched, key: key, unsaved: true}, nil
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
