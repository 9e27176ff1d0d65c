package source

import (
	"context"
	"errors"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
)

// Preferred is a repository with charts, and another source for the releases that it lacks.
type Preferred struct {
	Charts *Artifact
	Else   Source
}

var (
	_ ChartSource = &Preferred{}
	_ Remote      = &Preferred{}
	_ Tagged      = &Preferred{}
)

// Releases lists what either has. One that does not answer is no matter as long as the other has
// something.
func (p *Preferred) Releases(ctx context.Context) ([]Release, error) {
	charts, err := p.Charts.Releases(ctx)

	others, otherErr := p.Else.Releases(ctx)
	if err != nil && otherErr != nil {
		return nil, errors.Join(err, otherErr)
	}

	seen := map[string]bool{}

	var all []Release

	for _, r := range append(charts, others...) {
		if release := p.Release(r.Version); !seen[release.Version] {
			seen[release.Version] = true
			all = append(all, release)
		}
	}

	sortNewestFirst(all)

	return all, nil
}

// Release is the release of an exact version, whether or not there is one. It has the same origin
// wherever it is: the chart is the same.
func (p *Preferred) Release(version string) Release {
	release := p.Charts.Release(version)
	if remote, ok := p.Else.(Remote); ok {
		release.Origin += " or " + remote.Release(version).Origin
	}

	return release
}

// Named is the version that the other source's address names.
func (p *Preferred) Named() string {
	if remote, ok := p.Else.(Remote); ok {
		return remote.Named()
	}

	return ""
}

// Chart reads a release from the repository with charts; nil when that lacks it, or does not
// answer.
func (p *Preferred) Chart(ctx context.Context, release Release) (*oci.Chart, error) {
	c, err := p.Charts.Chart(ctx, release)
	if lacks(err) {
		return nil, nil
	}

	return c, err
}

// Moved looks at the repository with charts: there, tags are.
func (p *Preferred) Moved(ctx context.Context, release Release, inUse InUse) (oci.Reference, error) {
	return p.Charts.Moved(ctx, release, inUse)
}

// Fetch reads a release from the other source.
func (p *Preferred) Fetch(ctx context.Context, release Release) (*bundle.Bundle, error) {
	other, err := p.other(ctx, release)
	if err != nil {
		return nil, err
	}

	b, err := p.Else.Fetch(ctx, other)
	if err != nil {
		return nil, p.neither(ctx, release, err)
	}

	return b, nil
}

// Metadata reads the metadata.yaml of a release from where it is.
func (p *Preferred) Metadata(ctx context.Context, release Release) ([]byte, error) {
	data, err := p.Charts.Metadata(ctx, release)
	if !lacks(err) {
		return data, err
	}

	other, err := p.other(ctx, release)
	if err != nil {
		return nil, err
	}

	if remote, ok := p.Else.(Remote); ok {
		return remote.Metadata(ctx, other)
	}

	return fetchMetadata(ctx, p.Else, []Release{other})
}

// other is the release as the other source has it.
func (p *Preferred) other(ctx context.Context, release Release) (Release, error) {
	if remote, ok := p.Else.(Remote); ok {
		return remote.Release(release.Version), nil
	}

	releases, err := p.Else.Releases(ctx)
	if err != nil {
		return Release{}, err
	}

	return Pick(releases, release.Version, "")
}

// neither says of both sources why they do not have a release.
func (p *Preferred) neither(ctx context.Context, release Release, err error) error {
	_, chartErr := p.Charts.resolve(ctx, release)
	return errors.Join(chartErr, err)
}

// lacks reports whether the repository with charts is of no help, and another source may be.
func lacks(err error) bool {
	var (
		missing *NotFoundError
		wrong   *bundle.InvalidError
		untrust *UntrustedError
	)

	return err != nil && (errors.As(err, &missing) || !errors.As(err, &wrong) && !errors.As(err, &untrust))
}
