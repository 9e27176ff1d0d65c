package plan

import (
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/supply/store"
	"github.com/capstan-project/capstan/controllers/values"
)

// Chart is the chart of a provider's version.
type Chart struct {
	*store.Stored
	// Schema is what the chart lets a resource set.
	Schema *values.Schema

	// Outdated is why the source could not be read, although another chart is wanted than the one that
	// is stored: a refreshed one, or one in the current format. It is nil otherwise.
	Outdated error

	// fetched is the source that was just read; empty when the chart was in the store.
	fetched string
	// from identifies what the chart was built from.
	from versionID
	// key of the chart in the store.
	key store.Key
	// unsaved is set until the store has the chart.
	unsaved bool
}

// annotation returns one of the chart's annotations.
func (c *Chart) annotation(name string) string { return c.Chart.Metadata.Annotations[name] }

// Version returns the provider's version, with its "v".
func (c *Chart) Version() string { return c.Chart.Metadata.AppVersion }

// Contract returns the Cluster API contract of the chart's version.
func (c *Chart) Contract() string { return c.annotation(chartgen.AnnotationContract) }

// RequiredKinds returns the kinds that must be served by the cluster, as Kind.version.group.
func (c *Chart) RequiredKinds() []string {
	return strings.FieldsFunc(c.annotation(chartgen.AnnotationRequiredKinds), func(r rune) bool { return r == ',' })
}

// Status returns the chart as the resource's status shows it; before is what it has shown so far.
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
// shown so far, or the chart's own annotation; the annotation of a chart that was taken over as it was
// published names the source of an earlier stage.
func (c *Chart) source(before *v1alpha2.ChartStatus) string {
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
