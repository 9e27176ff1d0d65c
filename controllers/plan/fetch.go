package plan

import (
	"context"
	"fmt"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/chartgen/store"
	"github.com/capstan-project/capstan/controllers/metrics"
)

// fetch reads the version from its source and builds its chart.
func (c *Charts) fetch(ctx context.Context, from *source.Source, version source.Version) (*Chart, error) {
	asking, cancel := context.WithTimeout(ctx, sourceTimeout)
	defer cancel()

	published, err := from.Fetch(asking, version)
	c.metrics.ObserveFetch(metrics.Source(from.Kind), published.Size(), err)

	if err != nil {
		return nil, err
	}

	built, err := c.build(ctx, published)
	if err != nil {
		return nil, err
	}

	stored, err := store.New(built)
	if err != nil {
		return nil, err
	}

	found, err := c.share(stored)

	return &Chart{content: found, fetched: published.Place, unsaved: true}, err
}

// build builds the chart of what is published, one at a time: a build takes much memory, and the first one, usually
// core's, must not be slowed down by those that wait for it. They wait no longer than the context lasts. Of a chart,
// which anybody may have written, only the content is used.
func (c *Charts) build(ctx context.Context, published *source.Release) (*chart.Chart, error) {
	select {
	case c.building <- struct{}{}:
		defer func() { <-c.building }()
	case <-ctx.Done():
		return nil, fmt.Errorf("wait until the charts of other providers are built: %w", context.Cause(ctx))
	}

	if published.Chart != nil {
		return chartgen.Rebuild(published.Chart)
	}

	return chartgen.Build(published.Bundle)
}
