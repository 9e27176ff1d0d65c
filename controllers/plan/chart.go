package plan

import (
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/chartgen/store"
	"github.com/capstan-project/capstan/controllers/values"
)

// Chart is the chart of a provider's version.
type Chart struct {
	*content

	// Outdated is why the source did not give the version, so that a stored chart is used; nil otherwise.
	Outdated error

	// fetched is the source that was just read; empty when the chart was in the store.
	fetched string
	// from is the version that the chart was fetched from.
	from source.Version
	// unsaved is set until the store has the chart.
	unsaved bool
}

// content is what a chart has for all providers that use it. It is shared, and never modified.
type content struct {
	*store.Stored
	// Schema is what the chart lets a resource set.
	Schema *values.Schema
	// Reference is the place of the chart in the store.
	Reference string
}

// newContent returns the content of a stored chart. One that an earlier version of Capstan has stored is built again.
func newContent(stored *store.Stored, reference string) (*content, error) {
	if stored.Chart.Metadata.Annotations[chartgen.AnnotationChartgenVersion] != chartgen.Version {
		rebuilt, err := chartgen.Rebuild(stored.Chart)
		if err != nil {
			return nil, err
		}

		stored.Chart = rebuilt
	}

	schema, err := values.ReadSchema(stored.Chart)
	if err != nil {
		return nil, err
	}

	return &content{Stored: stored, Schema: schema, Reference: reference}, nil
}

// size returns how many bytes the files of the chart have.
func (c *content) size() int {
	size := 0
	for _, f := range slices.Concat(c.Chart.Files, c.Chart.CRDs) {
		size += len(f.Data)
	}

	return size
}

// annotation returns one of the chart's annotations.
func (c *content) annotation(name string) string { return c.Chart.Metadata.Annotations[name] }

// Version returns the provider's version, with its "v".
func (c *content) Version() string { return c.Chart.Metadata.AppVersion }

// Contract returns the Cluster API contract of the chart's version.
func (c *content) Contract() string { return c.annotation(chartgen.AnnotationContract) }

// RequiredKinds returns the kinds that must be served by the cluster, as Kind.version.group.
func (c *content) RequiredKinds() []string {
	return strings.FieldsFunc(c.annotation(chartgen.AnnotationRequiredKinds), func(r rune) bool { return r == ',' })
}

// Minors returns the minor versions that the metadata of the chart's version lists; none if it has no metadata.
func (c *content) Minors() []*semver.Version {
	metadata, err := bundle.ParseMetadata(chartgen.PublishedMetadata(c.Chart))
	if err != nil {
		return nil
	}

	minors := make([]*semver.Version, 0, len(metadata.ReleaseSeries))
	for _, s := range metadata.ReleaseSeries {
		minors = append(minors, semver.New(uint64(s.Major), uint64(s.Minor), 0, "", ""))
	}

	return minors
}

// Status returns the chart as the resource's status shows it. before is the chart in the present status.
func (c *Chart) Status(before *v1alpha2.ChartStatus) *v1alpha2.ChartStatus {
	return &v1alpha2.ChartStatus{
		Name:      c.Chart.Metadata.Name,
		Version:   c.Chart.Metadata.Version,
		Reference: c.Reference,
		Digest:    c.Digest,
		Source:    c.source(before),
	}
}

// source returns where the chart came from. For a chart from the store that is what the status has
// shown so far, or the chart's own annotation.
func (c *Chart) source(before *v1alpha2.ChartStatus) string {
	switch {
	case c.fetched != "":
		return c.fetched
	case before != nil && before.Digest == c.Digest && before.Source != "":
		return before.Source
	}

	return c.annotation(chartgen.AnnotationSource)
}
