// Package source finds and fetches what providers publish, wherever that is kept. All sources look
// alike: they list releases and fetch one as a bundle.
package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/opencontainers/go-digest"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
)

// Release is one version on offer.
type Version struct {
	// Version with its leading "v".
	Name string
	// Fingerprint changes whenever the release's bytes may have changed, without reading them.
	Fingerprint string
	// Name is what the source calls it: a ConfigMap's name, a folder.
	ID string
	// Origin says where exactly the release is, for people, when it cannot change there. What was
	// once fetched from an origin need not be fetched again. Empty for places where bytes change,
	// which are near enough to look every time.
	Origin string
}

// Source is a place where one provider's releases are kept.
type Source interface {
	// Releases lists what is on offer, newest first. An empty place is a *NotFoundError.
	Versions(ctx context.Context) ([]Version, error)
	// Fetch reads one of these releases. Files that are wrong or missing are a
	// *bundle.InvalidError.
	Fetch(ctx context.Context, release Version) (*bundle.Bundle, error)
}

// Remote is a source beyond a network, which may be slow, unreachable, or count how often it is
// asked.
type Remote interface {
	Source
	// Release is the release of an exact version, whether or not there is one: nobody is asked.
	Version(version string) Version
	// Named is the exact version that the source's own address names; empty when it names none.
	DefaultVersion() string
	// Metadata reads the metadata.yaml of a release and nothing else. A release that is not there
	// is a *NotFoundError.
	Metadata(ctx context.Context, release Version) ([]byte, error)
}

// mostAttempts is how many of a remote source's newest versions may turn out to be no releases, as
// in clusterctl.
const maxUnpublished = 5

// Resolve chooses the release that a version asks for, as Pick does, and asks a remote source only
// when it must: for an exact version, or a pinned one that still fits, nobody is asked, and an
// empty version is the one that the source's address names, if it does.
func Resolve(ctx context.Context, from Source, version, pinned string) (Version, error) {
	if remote, ok := from.(Remote); ok {
		if version == "" {
			version = remote.DefaultVersion()
		}

		if exact := exactVersion(version, pinned); exact != "" {
			return remote.Version(exact), nil
		}
	}

	releases, err := from.Versions(ctx)
	if err != nil {
		return Version{}, err
	}

	if remote, ok := from.(Remote); ok {
		if releases, _, err = skipUnpublished(ctx, remote, releases, version); err != nil {
			return Version{}, err
		}
	}

	return Pick(releases, version, pinned)
}

// published leaves out of what a remote source lists the tags that have no release (yet), down to
// the newest release that the version asks for. It gives that one's metadata, too.
func skipUnpublished(ctx context.Context, from Remote, releases []Version, version string) ([]Version, []byte, error) {
	for attempt := 1; ; attempt++ {
		picked, err := Pick(releases, version, "")
		if err != nil {
			return nil, nil, err
		}

		metadata, err := from.Metadata(ctx, picked)
		if missing := (*NotFoundError)(nil); !errors.As(err, &missing) || attempt == maxUnpublished {
			return releases, metadata, err
		}

		releases = slices.DeleteFunc(slices.Clone(releases), func(r Version) bool { return r.Name == picked.Name })
	}
}

// Offer lists all releases, newest first, and gives the metadata of the newest, which has the
// contracts of all.
func List(ctx context.Context, from Source) ([]Version, *bundle.Metadata, error) {
	releases, err := from.Versions(ctx)
	if err != nil {
		return nil, nil, err
	}

	var data []byte
	if remote, ok := from.(Remote); ok {
		releases, data, err = skipUnpublished(ctx, remote, releases, "")
	} else {
		data, err = fetchMetadata(ctx, from, releases)
	}

	if err != nil {
		return nil, nil, err
	}

	metadata, err := bundle.ParseMetadata(data)

	return releases, metadata, err
}

// fetchMetadata reads the metadata of the newest release where that is near.
func fetchMetadata(ctx context.Context, from Source, releases []Version) ([]byte, error) {
	newest, err := Pick(releases, "", "")
	if err != nil {
		return nil, err
	}

	b, err := from.Fetch(ctx, newest)
	if err != nil {
		return nil, err
	}

	return b.Metadata, nil
}

// exactVersion is the one version that can be meant without knowing what is on offer; empty when
// that is open.
func exactVersion(version, pinned string) string {
	if IsExact(version) {
		return version
	}

	if v, err := semver.NewVersion(pinned); err == nil {
		if matches, err := matcher(version); err == nil && matches(v) {
			return pinned
		}
	}

	return ""
}

// ChartSource is a source whose releases may be Helm charts already: nothing is generated for
// these.
type ChartSource interface {
	Source
	// Chart reads a release that is a chart, as it is; nil when it is none, and Fetch reads it.
	Chart(ctx context.Context, release Version) (*oci.Chart, error)
}

// Tagged is a source whose releases lie behind a registry's tags, which can be made to lead
// elsewhere. Nothing changes by that alone.
type TaggedSource interface {
	Source
	// Moved says where the tag of a release leads now, when that is not what is in use; else the
	// reference is empty, as it is when there is no such tag or when a digest is asked for.
	CheckTag(ctx context.Context, release Version, inUse Digests) (oci.Reference, error)
}

// InUse is what a release was once fetched as: its manifest in the registry, and its chart's
// archive. Either may be unknown, and empty.
type Digests struct{ Manifest, Chart digest.Digest }

// UntrustedError says that what a source has is not what is trusted: its digest or its signature is
// wrong. Nothing of it is used.
type UntrustedError struct {
	// Message is the whole story for a person.
	Message string
}

func (e *UntrustedError) Error() string { return e.Message }

// NotFoundError says that a source has nothing, or not the version asked for.
type NotFoundError struct {
	// Message is the whole story for a person: what was looked for, where, what is there instead.
	Message string
}

func (e *NotFoundError) Error() string { return e.Message }

// VersionError says that what is asked for is no version.
type VersionError struct {
	Version string
	Err     error
}

func (e *VersionError) Error() string {
	return fmt.Sprintf(
		"version %q is neither a semantic version such as v1.13.5 nor a range such as ~1.13: %v",
		e.Version,
		e.Err,
	)
}

func (e *VersionError) Unwrap() error { return e.Err }

// Pick chooses the release that a version asks for: that very version, the newest in a range
// ("~1.13", ">=1.13 <1.15"), or with an empty version the newest of all. Pre-releases are taken
// only when nothing else fits, as clusterctl does. A pinned version that still fits is kept, so
// that nothing floats by itself; it may be empty.
func Pick(releases []Version, version, pinned string) (Version, error) {
	matches, err := matcher(version)
	if err != nil {
		return Version{}, err
	}

	var fallback *Version

	for i, r := range releases {
		v, err := semver.NewVersion(r.Name)
		if err != nil || !matches(v) {
			continue
		}

		if r.Name == pinned {
			return r, nil
		}

		if fallback == nil || fallback.isPrerelease() && v.Prerelease() == "" {
			fallback = &releases[i]
		}
	}

	if fallback == nil {
		return Version{}, &NotFoundError{
			Message: fmt.Sprintf("version %s is not on offer; there is %s", version, versionList(releases)),
		}
	}

	return *fallback, nil
}

// IsExact reports whether a version names one release rather than a range.
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
		return nil, &VersionError{Version: version, Err: err}
	}

	return constraint.Check, nil
}

func (r Version) isPrerelease() bool {
	v, err := semver.NewVersion(r.Name)
	return err == nil && v.Prerelease() != ""
}

// Versions makes releases of version names, newest first. Names that are no semantic versions are
// left out.
func ParseVersions(names []string) []Version {
	var releases []Version

	for _, name := range names {
		if _, err := semver.NewVersion(name); err == nil {
			releases = append(releases, Version{Name: name, ID: name})
		}
	}

	sortNewestFirst(releases)

	return releases
}

// sortNewestFirst orders releases by version; all versions must be semantic.
func sortNewestFirst(releases []Version) {
	slices.SortFunc(releases, func(a, b Version) int {
		return semver.MustParse(b.Name).Compare(semver.MustParse(a.Name))
	})
}

// versionList names some versions for a message.
func versionList(releases []Version) string {
	const most = 8

	names := make([]string, 0, most+1)
	for _, r := range releases[:min(len(releases), most)] {
		names = append(names, r.Name)
	}

	if len(releases) > most {
		names = append(names, fmt.Sprintf("%d older", len(releases)-most))
	}

	return strings.Join(names, ", ")
}
