package source

import (
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/capstan-project/capstan/chartgen/supply/ranges"
)

// Pick selects a version from a list that is sorted newest first. Requested is an exact version, a
// range such as "~1.13" or ">=1.13 <1.15", of which the newest is selected, or empty for the newest
// of all. Pre-releases are selected only if nothing else matches, as in clusterctl.
//
// A pinned version that still matches is kept, so that a range does not cause upgrades by itself.
// It may be empty.
func Pick(versions []Version, requested, pinned string) (Version, error) {
	matches, err := ranges.Parse(requested)
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
