package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
	"github.com/capstan-project/capstan/chartgen/supply/web"
)

// ChartsFirst is a source that prefers ready charts in a repository, and reads from another source
// the versions that the repository does not have.
//
// Operators with different catalogs can share the repository. So a chart there is used only if its
// annotations name the place that the other source reads the version from. All others are treated as
// absent.
type ChartsFirst struct {
	// Charts is the repository with charts.
	Charts *Artifact
	// Fallback is the source of everything else.
	Fallback Source
	// AnyOrigin accepts all charts, whatever they were built from.
	AnyOrigin bool
	// FallBackOnError reads from Fallback even while the repository cannot be read. Otherwise that
	// is an error: the repository may exist so that nothing else is contacted.
	FallBackOnError bool
}

var (
	_ ChartSource = &ChartsFirst{}
	_ Remote      = &ChartsFirst{}
)

// optionalTimeout limits how long Versions waits for Fallback if Charts has versions.
const optionalTimeout = 10 * time.Second

// Versions lists the versions of both sources. Only one of them must have any, but the repository
// must not fail. If it has versions, it may be there because Fallback cannot be reached from here, so
// little time is spent on that.
func (p *ChartsFirst) Versions(ctx context.Context) ([]Version, error) {
	charts, chartsErr := p.Charts.Versions(ctx)
	if err := p.repositoryError(ctx, chartsErr); err != nil {
		return nil, err
	}

	if len(charts) > 0 {
		var cancel context.CancelFunc

		ctx, cancel = context.WithTimeout(web.WithoutRetries(ctx), optionalTimeout)
		defer cancel()
	}

	others, othersErr := p.Fallback.Versions(ctx)

	if chartsErr != nil && othersErr != nil {
		return nil, errors.Join(chartsErr, othersErr)
	}

	var all []Version

	seen := map[string]bool{}

	for _, v := range append(charts, others...) {
		version := p.Version(v.Name)
		if !seen[version.Name] {
			seen[version.Name] = true
			all = append(all, version)
		}
	}

	sortNewestFirst(all)

	return all, nil
}

// Version returns the Version of a name. Its origin names both sources, since the chart is the same
// whichever of them has it, and what is accepted.
func (p *ChartsFirst) Version(name string) Version {
	version := p.Charts.Version(name)
	if p.AnyOrigin {
		version.Origin += " of any origin"
	}

	if remote, ok := p.Fallback.(Remote); ok {
		version.Origin += " or " + remote.Version(name).Origin
	}

	return version
}

// DefaultVersion returns the version in the address of the fallback.
func (p *ChartsFirst) DefaultVersion() string {
	if remote, ok := p.Fallback.(Remote); ok {
		return remote.DefaultVersion()
	}

	return ""
}

// Chart reads a version from the repository with charts, or else the fallback's chart of it. It returns nil if neither
// has one.
func (p *ChartsFirst) Chart(ctx context.Context, version Version) (*oci.Chart, error) {
	c, err := p.Charts.Chart(ctx, version)
	if err := p.repositoryError(ctx, err); err != nil {
		return nil, err
	}

	if c != nil && p.accepts(ctx, version, c.Reference, c.Metadata.Name, c.Metadata.Annotations) {
		return c, nil
	}

	others, ok := p.Fallback.(ChartSource)
	if !ok {
		return nil, nil
	}

	other, err := p.fallbackVersion(ctx, version)
	if err != nil {
		return nil, err
	}

	if c, err = others.Chart(ctx, other); IsNotFound(err) {
		return nil, nil // Fetch reports it, with what is wrong with the repository
	}

	return c, err
}

// Fetch reads a version from the fallback. If that fails, the error also contains why there is no
// chart.
func (p *ChartsFirst) Fetch(ctx context.Context, version Version) (*bundle.Bundle, error) {
	other, err := p.fallbackVersion(ctx, version)
	if err != nil {
		return nil, err
	}

	b, err := p.Fallback.Fetch(ctx, other)
	if err != nil {
		_, chartErr := p.Charts.resolve(ctx, version)
		return nil, errors.Join(chartErr, err)
	}

	return b, nil
}

// Metadata reads the metadata.yaml of a version from its chart, or else from the fallback.
func (p *ChartsFirst) Metadata(ctx context.Context, version Version) ([]byte, error) {
	c, err := p.Chart(ctx, version)
	if err != nil {
		return nil, err
	}

	if c != nil {
		return chartgen.PublishedMetadata(c.Chart), nil
	}

	other, err := p.fallbackVersion(ctx, version)
	if err != nil {
		return nil, err
	}

	if remote, ok := p.Fallback.(Remote); ok {
		return remote.Metadata(ctx, other)
	}

	return fetchMetadata(ctx, p.Fallback, other)
}

// trust returns what is required of charts in the repository.
func (p *ChartsFirst) trust(ctx context.Context) (string, error) { return p.Charts.trust(ctx) }

// fallbackVersion returns the fallback's Version of the same name.
func (p *ChartsFirst) fallbackVersion(ctx context.Context, version Version) (Version, error) {
	if remote, ok := p.Fallback.(Remote); ok {
		return remote.Version(version.Name), nil
	}

	versions, err := p.Fallback.Versions(ctx)
	if err != nil {
		return Version{}, err
	}

	return Pick(versions, version.Name, "")
}

// accepts reports whether a chart in the repository, with a name and annotations, was built from what
// the fallback has of a version. Other charts are logged.
func (p *ChartsFirst) accepts(
	ctx context.Context, version Version, ref oci.Reference, name string, annotations map[string]string,
) bool {
	var wanted Version
	if remote, ok := p.Fallback.(Remote); ok {
		wanted = remote.Version(version.Name)
	}

	origin := annotations[chartgen.AnnotationSource]
	if p.AnyOrigin || name == p.Charts.provider.Label && isOrigin(origin, wanted) {
		return true
	}

	logr.FromContextOrDiscard(ctx).Info(
		"Ignoring a chart in the chart repository because it was not built from the catalog's source; "+
			"--trust-chart-repository accepts it",
		"chart", ref.String(), "name", name, "source", origin, "expected", wanted.Origin,
	)

	return false
}

// isOrigin reports whether the origin that a chart names is that of a version. The chart of an artifact also names the
// digest that the tag had when the chart was built.
func isOrigin(origin string, of Version) bool {
	if ref, err := oci.Parse(origin); err == nil && ref.Tag != "" && origin != of.Origin {
		origin = ref.WithTag(ref.Tag).String()
	}

	return origin != "" && (origin == of.Origin || origin == of.Unprefixed)
}

// repositoryError returns the error for a repository that could not be read; nil if it merely lacks a
// version, or if the fallback may be used anyway. A chart that is invalid or not trusted is
// always an error.
func (p *ChartsFirst) repositoryError(ctx context.Context, err error) error {
	switch {
	case err == nil, IsNotFound(err):
		return nil
	case !IsUnavailable(err):
		return err
	case !p.FallBackOnError:
		return fmt.Errorf("%w; without the chart repository, the catalog's source is used only with "+
			"--chart-repository-fallback", err)
	}

	logr.FromContextOrDiscard(ctx).Info(
		"The chart repository cannot be read, so the catalog's source is used",
		"error", err.Error(),
	)

	return nil
}
