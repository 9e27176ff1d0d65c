package source

import (
	"context"
	"errors"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
)

// Preferred is a repository with charts, and another source for the releases that it lacks.
type ChartsFirst struct {
	Charts *Artifact
	Fallback   Source
}

var (
	_ ChartSource = &ChartsFirst{}
	_ Remote      = &ChartsFirst{}
	_ TaggedSource      = &ChartsFirst{}
)

// Releases lists what either has. One that does not answer is no matter as long as the other has
// something.
func (p *ChartsFirst) Versions(ctx context.Context) ([]Version, error) {
	charts, err := p.Charts.Versions(ctx)

	others, otherErr := p.Fallback.Versions(ctx)
	if err != nil && otherErr != nil {
		return nil, errors.Join(err, otherErr)
	}

	seen := map[string]bool{}

	var all []Version

	for _, r := range append(charts, others...) {
		if release := p.Version(r.Name); !seen[release.Name] {
			seen[release.Name] = true
			all = append(all, release)
		}
	}

	sortNewestFirst(all)

	return all, nil
}

// Release is the release of an exact version, whether or not there is one. It has the same origin
// wherever it is: the chart is the same.
func (p *ChartsFirst) Version(version string) Version {
	release := p.Charts.Version(version)
	if remote, ok := p.Fallback.(Remote); ok {
		release.Origin += " or " + remote.Version(version).Origin
	}

	return release
}

// Named is the version that the other source's address names.
func (p *ChartsFirst) DefaultVersion() string {
	if remote, ok := p.Fallback.(Remote); ok {
		return remote.DefaultVersion()
	}

	return ""
}

// Chart reads a release from the repository with charts; nil when that lacks it, or does not
// answer.
func (p *ChartsFirst) Chart(ctx context.Context, release Version) (*oci.Chart, error) {
	c, err := p.Charts.Chart(ctx, release)
	if needsFallback(err) {
		return nil, nil
	}

	return c, err
}

// Moved looks at the repository with charts: there, tags are.
func (p *ChartsFirst) CheckTag(ctx context.Context, release Version, inUse Digests) (oci.Reference, error) {
	return p.Charts.CheckTag(ctx, release, inUse)
}

// Fetch reads a release from the other source.
func (p *ChartsFirst) Fetch(ctx context.Context, release Version) (*bundle.Bundle, error) {
	other, err := p.fallbackVersion(ctx, release)
	if err != nil {
		return nil, err
	}

	b, err := p.Fallback.Fetch(ctx, other)
	if err != nil {
		return nil, p.neither(ctx, release, err)
	}

	return b, nil
}

// Metadata reads the metadata.yaml of a release from where it is.
func (p *ChartsFirst) Metadata(ctx context.Context, release Version) ([]byte, error) {
	data, err := p.Charts.Metadata(ctx, release)
	if !needsFallback(err) {
		return data, err
	}

	other, err := p.fallbackVersion(ctx, release)
	if err != nil {
		return nil, err
	}

	if remote, ok := p.Fallback.(Remote); ok {
		return remote.Metadata(ctx, other)
	}

	return fetchMetadata(ctx, p.Fallback, []Version{other})
}

// other is the release as the other source has it.
func (p *ChartsFirst) fallbackVersion(ctx context.Context, release Version) (Version, error) {
	if remote, ok := p.Fallback.(Remote); ok {
		return remote.Version(release.Name), nil
	}

	releases, err := p.Fallback.Versions(ctx)
	if err != nil {
		return Version{}, err
	}

	return Pick(releases, release.Name, "")
}

// neither says of both sources why they do not have a release.
func (p *ChartsFirst) neither(ctx context.Context, release Version, err error) error {
	_, chartErr := p.Charts.resolve(ctx, release)
	return errors.Join(chartErr, err)
}

// lacks reports whether the repository with charts is of no help, and another source may be.
func needsFallback(err error) bool {
	var (
		missing *NotFoundError
		wrong   *bundle.InvalidError
		untrust *UntrustedError
	)

	return err != nil && (errors.As(err, &missing) || !errors.As(err, &wrong) && !errors.As(err, &untrust))
}
