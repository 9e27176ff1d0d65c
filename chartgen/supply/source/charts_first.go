package source

import (
	"context"
	"errors"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
)

// ChartsFirst is a source that prefers ready charts in a repository, and reads from another source
// the versions that the repository does not have.
type ChartsFirst struct {
	// Charts is the repository with charts.
	Charts *Artifact
	// Fallback is the source of everything else.
	Fallback Source
}

var (
	_ ChartSource  = &ChartsFirst{}
	_ Remote       = &ChartsFirst{}
	_ TaggedSource = &ChartsFirst{}
)

// Versions lists the versions of both sources. It fails only if both do.
func (p *ChartsFirst) Versions(ctx context.Context) ([]Version, error) {
	charts, chartsErr := p.Charts.Versions(ctx)
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
// whichever of them has it.
func (p *ChartsFirst) Version(name string) Version {
	version := p.Charts.Version(name)
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

// Chart reads a version from the repository with charts. It returns nil if the repository does not
// have it or does not answer.
func (p *ChartsFirst) Chart(ctx context.Context, version Version) (*oci.Chart, error) {
	c, err := p.Charts.Chart(ctx, version)
	if needsFallback(err) {
		return nil, nil
	}

	return c, err
}

// CheckTag checks the tag in the repository with charts. The fallback's tags are not checked.
func (p *ChartsFirst) CheckTag(ctx context.Context, version Version, installed Digests) (oci.Reference, error) {
	return p.Charts.CheckTag(ctx, version, installed)
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
	data, err := p.Charts.Metadata(ctx, version)
	if !needsFallback(err) {
		return data, err
	}

	other, err := p.fallbackVersion(ctx, version)
	if err != nil {
		return nil, err
	}

	if remote, ok := p.Fallback.(Remote); ok {
		return remote.Metadata(ctx, other)
	}

	return fetchMetadata(ctx, p.Fallback, []Version{other})
}

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

// needsFallback reports whether the repository with charts lacks a version or cannot be read. A chart
// that is invalid or not trusted is an error instead, even if the fallback has the version.
func needsFallback(err error) bool {
	var (
		invalid   *bundle.InvalidError
		untrusted *UntrustedError
	)

	switch {
	case err == nil:
		return false
	case IsNotFound(err):
		return true
	default:
		return !errors.As(err, &invalid) && !errors.As(err, &untrusted)
	}
}
