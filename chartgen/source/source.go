// Package source finds and fetches what providers publish, wherever that is kept. All sources look alike: they list
// releases and fetch one as a bundle.
package source

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/capstan-project/capstan/chartgen/bundle"
)

// Release is one version on offer.
type Release struct {
	// Version with its leading "v".
	Version string
	// Fingerprint changes whenever the release's bytes may have changed, without reading them.
	Fingerprint string
	// Name is what the source calls it: a ConfigMap's name, a folder.
	Name string
}

// Source is a place where one provider's releases are kept.
type Source interface {
	// Releases lists what is on offer, newest first. An empty place is a *NotFoundError.
	Releases(ctx context.Context) ([]Release, error)
	// Fetch reads one of these releases. Files that are wrong or missing are a *bundle.InvalidError.
	Fetch(ctx context.Context, release Release) (*bundle.Bundle, error)
}

// NotFoundError says that a source has nothing, or not the version asked for.
type NotFoundError struct {
	// Message is the whole story for a person: what was looked for, where, what is there instead.
	Message string
}

func (e *NotFoundError) Error() string { return e.Message }

// Pick chooses the release that a version asks for: that very version, the newest in a range ("~1.13", ">=1.13 <1.15"),
// or with an empty version the newest of all. Pre-releases are taken only when nothing else fits, as clusterctl does.
// A pinned version that still fits is kept, so that nothing floats by itself; it may be empty.
func Pick(releases []Release, version, pinned string) (Release, error) {
	matches, err := matcher(version)
	if err != nil {
		return Release{}, err
	}
	var fallback *Release
	for i, r := range releases {
		v, err := semver.NewVersion(r.Version)
		if err != nil || !matches(v) {
			continue
		}
		if r.Version == pinned {
			return r, nil
		}
		if fallback == nil || fallback.prerelease() && v.Prerelease() == "" {
			fallback = &releases[i]
		}
	}
	if fallback == nil {
		return Release{}, &NotFoundError{Message: fmt.Sprintf("version %s is not on offer; there is %s", version, versionList(releases))}
	}
	return *fallback, nil
}

// IsExact says whether a version names one release rather than a range.
func IsExact(version string) bool {
	_, err := semver.NewVersion(version)
	return err == nil && strings.Count(version, ".") >= 2
}

// matcher makes the test for a version, a range or "" (anything).
func matcher(version string) (func(*semver.Version) bool, error) {
	if version == "" {
		return func(*semver.Version) bool { return true }, nil
	}
	if IsExact(version) {
		want := semver.MustParse(version)
		return want.Equal, nil
	}
	constraint, err := semver.NewConstraint(version)
	if err != nil {
		return nil, fmt.Errorf("version %q is neither a semantic version such as v1.13.5 nor a range such as ~1.13: %w", version, err)
	}
	return constraint.Check, nil
}

func (r Release) prerelease() bool {
	v, err := semver.NewVersion(r.Version)
	return err == nil && v.Prerelease() != ""
}

// sortNewestFirst orders releases by version; all versions must be semantic.
func sortNewestFirst(releases []Release) {
	slices.SortFunc(releases, func(a, b Release) int {
		return semver.MustParse(b.Version).Compare(semver.MustParse(a.Version))
	})
}

// versionList names some versions for a message.
func versionList(releases []Release) string {
	const most = 8
	names := make([]string, 0, most+1)
	for _, r := range releases[:min(len(releases), most)] {
		names = append(names, r.Version)
	}
	if len(releases) > most {
		names = append(names, fmt.Sprintf("%d older", len(releases)-most))
	}
	return strings.Join(names, ", ")
}
