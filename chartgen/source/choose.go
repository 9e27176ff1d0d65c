package source

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/ranges"
	"github.com/capstan-project/capstan/chartgen/transport"
)

// maxUnpublished is how many of the newest tags may have no release, as in clusterctl.
const maxUnpublished = 5

// Request selects a version of a source.
type Request struct {
	// Version is exact, a range such as "~1.13" or ">=1.13 <1.15", or empty.
	Version string
	// Pinned is what the same request selected before; empty for nothing. It is kept while it matches.
	Pinned string
	// Choice returns the condition that a version must meet when several match. It fails if it is too early to choose.
	// Nil accepts all versions.
	Choice func(ctx context.Context) (Condition, error)
}

// Condition returns the reason to reject a version with a Cluster API contract; nil to accept it.
type Condition func(contract string) error

// Resolve selects the version that is requested, with the rules of Pick. If there is a choice, it is the newest that
// meets the request's condition. If no version is requested, it is the one in the source's address, if there is one.
func (s *Source) Resolve(ctx context.Context, request Request) (Version, error) {
	if request.Version == "" {
		request.Version = s.Default
	}

	version, err := s.resolve(ctx, request)
	if err != nil {
		return Version{}, err
	}

	version.Origin.Digest = s.Digest

	if s.Trust != nil {
		version.Origin.Trust, err = s.Trust(ctx)
	}

	return version, err
}

// resolve selects the version that is requested.
func (s *Source) resolve(ctx context.Context, request Request) (Version, error) {
	if exact := ranges.Exact(request.Version, request.Pinned); exact != "" && s.exact != nil {
		return s.exact(exact), nil
	}

	done, err := s.admit()
	if err != nil {
		return Version{}, err
	}
	defer done()

	versions, err := s.Versions(ctx)
	if err != nil {
		return Version{}, err
	}

	picked, err := Pick(versions, request.Version, request.Pinned)
	if err != nil || ranges.IsExact(request.Version) || picked.Name == request.Pinned {
		return picked, err
	}

	return s.choose(ctx, versions, request)
}

// choose selects the newest version that matches a request, has a release and meets the request's condition. The
// metadata of the newest version lists the contracts of all. A version without a contract is chosen, so that the
// reason is reported when its chart is read or built.
func (s *Source) choose(ctx context.Context, versions []Version, request Request) (Version, error) {
	condition := Condition(func(string) error { return nil })

	if request.Choice != nil {
		var err error
		if condition, err = request.Choice(ctx); err != nil {
			return Version{}, err
		}
	}

	newest, versions, data, err := s.newest(ctx, versions, request.Version)
	if err != nil {
		return Version{}, err
	}

	metadata, err := bundle.ParseMetadata(data)
	if err != nil {
		return newest, nil //nolint:nilerr // see above
	}

	unmet := func(version Version) error {
		contract, err := bundle.Contract(metadata, version.Name)
		if err != nil {
			return err
		}

		return condition(contract)
	}

	if _, err := bundle.Contract(metadata, newest.Name); err != nil {
		return newest, nil //nolint:nilerr // see above
	}

	why := unmet(newest)
	if why == nil {
		return newest, nil
	}

	older := slices.DeleteFunc(versions, func(v Version) bool { return unmet(v) != nil })

	chosen, _, _, err := s.newest(ctx, older, request.Version)
	if IsNotFound(err) {
		which := "no available version"
		if request.Version != "" {
			which = "no version in the range " + request.Version
		}

		return Version{}, fmt.Errorf("%s can be used; the newest is %s: %w", which, newest.Name, why)
	}

	return chosen, err
}

// List returns all versions, newest first, and the metadata of the newest, which lists the contracts of all.
func (s *Source) List(ctx context.Context) ([]Version, *clusterctlv1.Metadata, error) {
	done, err := s.admit()
	if err != nil {
		return nil, nil, err
	}
	defer done()

	versions, err := s.Versions(ctx)
	if err != nil {
		return nil, nil, err
	}

	_, versions, data, err := s.newest(ctx, versions, "")
	if err != nil {
		return nil, nil, err
	}

	metadata, err := bundle.ParseMetadata(data)

	return versions, metadata, err
}

// newest returns the newest version that matches a request and has a release, and its metadata. The versions are
// without those newer tags that have none (yet).
func (s *Source) newest(
	ctx context.Context, versions []Version, requested string,
) (newest Version, released []Version, metadata []byte, err error) {
	released = slices.Clone(versions)

	var unpublished error

	for attempt := 1; ; attempt++ {
		newest, err = Pick(released, requested, "")
		if IsNotFound(err) && unpublished != nil {
			err = unpublished
		}

		if err != nil {
			return Version{}, nil, nil, err
		}

		metadata, err := s.metadata(ctx, newest)
		if err == nil {
			return newest, released, metadata, nil
		}

		if !IsNotFound(err) || attempt == maxUnpublished {
			return Version{}, nil, nil, err
		}

		if unpublished == nil {
			unpublished = err
		}

		released = slices.DeleteFunc(released, func(v Version) bool { return v.Name == newest.Name })
	}
}

// metadata returns the metadata of a version.
func (s *Source) metadata(ctx context.Context, version Version) ([]byte, error) {
	if s.Metadata != nil {
		if kept := s.Metadata(version); kept != nil {
			return kept, nil
		}
	}

	files, err := s.Files(ctx, version)
	if err != nil {
		return nil, err
	}

	return files.Metadata, nil
}

// Pick selects a version from a list that is sorted newest first. requested is an exact version, a range such as
// "~1.13" or ">=1.13 <1.15", or empty; Pick returns the newest match. Like clusterctl, it selects a pre-release only if
// nothing else matches.
//
// A pinned version that still matches is kept, so that a range does not cause upgrades by itself. It may be empty.
func Pick(versions []Version, requested, pinned string) (Version, error) {
	matches, err := ranges.Parse(requested)
	if err != nil {
		return Version{}, err
	}

	var best, bestPrerelease *Version

	for i, candidate := range versions {
		v, err := semver.NewVersion(candidate.Name)

		switch {
		case err != nil || !matches(v):
		case candidate.Name == pinned:
			return candidate, nil
		case v.Prerelease() != "" && bestPrerelease == nil:
			bestPrerelease = &versions[i]
		case v.Prerelease() == "" && best == nil:
			best = &versions[i]
		}
	}

	if best == nil {
		best = bestPrerelease
	}

	if best == nil {
		return Version{}, &transport.Error{
			Kind: transport.NotFound, Problem: "version " + requested + " is not available",
			Fix: "the source has " + summarize(versions),
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
	slices.SortStableFunc(versions, func(a, b Version) int {
		return semver.MustParse(b.Name).Compare(semver.MustParse(a.Name))
	})
}

// withV returns a version with exactly one leading "v".
func withV(version string) string { return "v" + withoutV(version) }

// withoutV returns a version without a leading "v".
func withoutV(version string) string { return strings.TrimPrefix(version, "v") }

// isComplete reports whether a name is a semantic version with all its parts, with or without "v". As for clusterctl,
// v01.0.0 is none, and tags such as v1.13 move with each release.
func isComplete(name string) bool {
	_, err := semver.StrictNewVersion(withoutV(name))
	return err == nil
}

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
