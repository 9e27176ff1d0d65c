package source

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/capstan-project/capstan/chartgen/bundle"
)

// maxUnpublished is how many of the newest tags of a remote source may have no release, as in
// clusterctl.
const maxUnpublished = 5

// Resolve selects the version that is requested, with the rules of Pick. It sends requests to a
// remote source only if it has to: none for an exact version, nor for a pinned one that still
// matches. If requested is empty, it is the version in the source's address, if there is one. The
// origin of the version includes which signatures are required.
func Resolve(ctx context.Context, from Source, requested, pinned string) (Version, error) {
	version, err := resolveName(ctx, from, requested, pinned)
	if err != nil {
		return Version{}, err
	}

	if verified, ok := from.(interface {
		trust(ctx context.Context) (string, error)
	}); ok {
		required, err := verified.trust(ctx)
		if err != nil {
			return Version{}, err
		}

		if required != "" {
			version.Origin += " " + required
		}
	}

	return version, nil
}

// resolveName selects the version that is requested. Its origin does not name the required
// signatures yet.
func resolveName(ctx context.Context, from Source, requested, pinned string) (Version, error) {
	if addressed, ok := from.(interface{ DefaultVersion() string }); ok && requested == "" {
		requested = addressed.DefaultVersion()
	}

	remote, isRemote := from.(Remote)
	if isRemote {
		if exact := exactVersion(requested, pinned); exact != "" {
			return remote.Version(exact), nil
		}
	}

	versions, err := from.Versions(ctx)
	if err != nil {
		return Version{}, err
	}

	if isRemote {
		versions, _, err = skipUnpublished(ctx, remote, versions, requested)
		if err != nil {
			return Version{}, err
		}
	}

	return Pick(versions, requested, pinned)
}

// List returns all versions, newest first, and the metadata of the newest, which lists the contracts
// of all.
func List(ctx context.Context, from Source) ([]Version, *bundle.Metadata, error) {
	versions, err := from.Versions(ctx)
	if err != nil {
		return nil, nil, err
	}

	var data []byte
	if remote, ok := from.(Remote); ok {
		versions, data, err = skipUnpublished(ctx, remote, versions, "")
	} else {
		data, err = fetchMetadata(ctx, from, versions)
	}

	if err != nil {
		return nil, nil, err
	}

	metadata, err := bundle.ParseMetadata(data)

	return versions, metadata, err
}

// skipUnpublished removes those tags from the versions of a remote source that have no release
// (yet), down to the newest version that matches the request. It also returns that version's
// metadata.
func skipUnpublished(
	ctx context.Context,
	from Remote,
	versions []Version,
	requested string,
) ([]Version, []byte, error) {
	var unpublished error

	for attempt := 1; ; attempt++ {
		picked, err := Pick(versions, requested, "")
		if IsNotFound(err) && unpublished != nil {
			err = unpublished
		}

		if err != nil {
			return nil, nil, err
		}

		metadata, err := from.Metadata(ctx, picked)
		if !IsNotFound(err) || attempt == maxUnpublished {
			return versions, metadata, err
		}

		if unpublished == nil {
			unpublished = err
		}

		versions = slices.DeleteFunc(slices.Clone(versions), func(v Version) bool { return v.Name == picked.Name })
	}
}

// fetchMetadata reads the metadata of the newest version of a local source.
func fetchMetadata(ctx context.Context, from Source, versions []Version) ([]byte, error) {
	newest, err := Pick(versions, "", "")
	if err != nil {
		return nil, err
	}

	b, err := from.Fetch(ctx, newest)
	if err != nil {
		return nil, err
	}

	return b.Metadata, nil
}

// Pick selects a version from a list that is sorted newest first. Requested is an exact version, a
// range such as "~1.13" or ">=1.13 <1.15", of which the newest is selected, or empty for the newest
// of all. Pre-releases are selected only if nothing else matches, as in clusterctl.
//
// A pinned version that still matches is kept, so that a range does not cause upgrades by itself.
// It may be empty.
func Pick(versions []Version, requested, pinned string) (Version, error) {
	matches, err := newMatcher(requested)
	if err != nil {
		return Version{}, err
	}

	var best *Version

	for i, candidate := range versions {
		v, err := semver.NewVersion(candidate.Name)
		if err != nil || !matches(v) {
			continue
		}

		if candidate.Name == pinned {
			return candidate, nil
		}

		if best == nil || best.isPrerelease() && v.Prerelease() == "" {
			best = &versions[i]
		}
	}

	if best == nil {
		return Version{}, &NotFoundError{
			Message: fmt.Sprintf("version %s is not on offer; there is %s", requested, summarize(versions)),
		}
	}

	return *best, nil
}

// IsExact reports whether a requested version is a single version rather than a range.
func IsExact(version string) bool {
	_, err := semver.NewVersion(version)
	return err == nil && strings.Count(version, ".") >= 2
}

// exactVersion returns the version that Pick would select whatever versions there are; empty if that
// depends on them.
func exactVersion(requested, pinned string) string {
	if IsExact(requested) {
		return requested
	}

	v, err := semver.NewVersion(pinned)
	if err != nil {
		return ""
	}

	matches, err := newMatcher(requested)
	if err != nil || !matches(v) {
		return ""
	}

	return pinned
}

// newMatcher returns a function that reports whether a version matches the requested version or
// range; with an empty request, every version does.
func newMatcher(requested string) (func(*semver.Version) bool, error) {
	if requested == "" {
		return func(*semver.Version) bool { return true }, nil
	}

	if IsExact(requested) {
		return semver.MustParse(requested).Equal, nil
	}

	constraint, err := semver.NewConstraint(requested)
	if err != nil {
		return nil, &VersionError{Version: requested, Err: err}
	}

	return constraint.Check, nil
}

// ParseVersions returns the names that are semantic versions as Versions, newest first, and ignores
// the others.
func ParseVersions(names []string) []Version {
	var versions []Version

	for _, name := range names {
		if _, err := semver.NewVersion(name); err == nil {
			versions = append(versions, Version{Name: name, ID: name})
		}
	}

	sortNewestFirst(versions)

	return versions
}

// sortNewestFirst sorts versions; all names must be semantic versions.
func sortNewestFirst(versions []Version) {
	slices.SortFunc(versions, func(a, b Version) int {
		return semver.MustParse(b.Name).Compare(semver.MustParse(a.Name))
	})
}

// withV returns a version with exactly one leading "v".
func withV(version string) string { return "v" + withoutV(version) }

// withoutV returns a version without a leading "v".
func withoutV(version string) string { return strings.TrimPrefix(version, "v") }

// summarize lists the newest versions for a message.
func summarize(versions []Version) string {
	const maxListed = 8

	names := make([]string, 0, maxListed+1)
	for _, v := range versions[:min(len(versions), maxListed)] {
		names = append(names, v.Name)
	}

	if len(versions) > maxListed {
		names = append(names, fmt.Sprintf("%d older", len(versions)-maxListed))
	}

	return strings.Join(names, ", ")
}
