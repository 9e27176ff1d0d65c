package source

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/utils/lru"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/supply/ranges"
)

// maxUnpublished is how many of the newest tags of a remote source may have no release, as in
// clusterctl.
const maxUnpublished = 5

// Request is what a user asks for of the versions of a source.
type Request struct {
	// Version is exact, a range such as "~1.13" or ">=1.13 <1.15", or empty.
	Version string
	// Pinned is what the same request selected before; empty for nothing. It is kept while it matches.
	Pinned string
	// Choice returns what must be true of the version if there is a choice of several, or why none may be
	// chosen yet. Nil accepts all.
	Choice func(ctx context.Context) (Condition, error)
}

// Condition returns why a version with a Cluster API contract must not be chosen; nil if it may be.
type Condition func(contract string) error

// Resolve selects the version that is requested, with the rules of Pick. If there is a choice, it is the
// newest that meets the request's condition. It sends requests to a remote source only if it has to:
// none for an exact version, nor for a pinned one that still matches. If no version is requested, it is
// the one in the source's address, if there is one. The origin of the version includes which signatures
// are required.
func Resolve(ctx context.Context, from Source, request Request) (Version, error) {
	version, err := resolveName(ctx, from, request)
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
func resolveName(ctx context.Context, from Source, request Request) (Version, error) {
	if addressed, ok := from.(interface{ DefaultVersion() string }); ok && request.Version == "" {
		request.Version = addressed.DefaultVersion()
	}

	remote, isRemote := from.(Remote)
	if isRemote {
		if exact := ranges.Only(request.Version, request.Pinned); exact != "" {
			return remote.Version(exact), nil
		}
	}

	versions, err := from.Versions(ctx)
	if err != nil {
		return Version{}, err
	}

	picked, err := Pick(versions, request.Version, request.Pinned)
	if _, inConfigMaps := from.(*ConfigMaps); inConfigMaps && IsNotFound(err) {
		err = &NotFoundError{Message: fmt.Sprintf("%v; a ConfigMap has the version of its label %s, or else of its name",
			err, v1alpha2.ConfigMapVersionLabel)}
	}

	if err != nil || ranges.IsExact(request.Version) || picked.Name == request.Pinned {
		return picked, err
	}

	return choose(ctx, from, versions, request)
}

// choose selects the newest version that matches a request, has a release and meets the request's
// condition.
func choose(ctx context.Context, from Source, versions []Version, request Request) (Version, error) {
	_, isRemote := from.(Remote)
	if request.Choice == nil && !isRemote {
		return Pick(versions, request.Version, "")
	}

	condition := Condition(func(string) error { return nil })

	if request.Choice != nil {
		var err error
		if condition, err = request.Choice(ctx); err != nil {
			return Version{}, err
		}
	}

	versions, metadata, err := newestMetadata(ctx, from, versions, request.Version)
	if err != nil {
		return Version{}, err
	}

	newest, err := Pick(versions, request.Version, "")
	if err != nil {
		return Version{}, err
	}

	older, unmet := meeting(condition, versions, newest, metadata)
	if unmet == nil {
		return newest, nil
	}

	if older, _, err = newestMetadata(ctx, from, older, request.Version); IsNotFound(err) {
		return Version{}, &ConditionError{Requested: request.Version, Newest: newest.Name, Err: unmet}
	}

	if err != nil {
		return Version{}, err
	}

	return Pick(older, request.Version, "")
}

// meeting returns why the newest version does not meet a condition, and the versions that do. The
// metadata of the newest version lists the contracts of all. A version without a contract is chosen, so
// that the reason is reported when its chart is read or built.
func meeting(condition Condition, versions []Version, newest Version, data []byte) ([]Version, error) {
	metadata, err := bundle.ParseMetadata(data)
	if err != nil {
		return nil, nil //nolint:nilerr // see above
	}

	contract, err := metadata.Contract(newest.Name)
	if err != nil {
		return nil, nil //nolint:nilerr // see above
	}

	unmet := condition(contract)
	if unmet == nil {
		return nil, nil
	}

	return slices.DeleteFunc(slices.Clone(versions), func(v Version) bool {
		contract, err := metadata.Contract(v.Name)
		return err != nil || condition(contract) != nil
	}), unmet
}

// List returns all versions, newest first, and the metadata of the newest, which lists the contracts
// of all.
func List(ctx context.Context, from Source) ([]Version, *bundle.Metadata, error) {
	versions, err := from.Versions(ctx)
	if err != nil {
		return nil, nil, err
	}

	versions, data, err := newestMetadata(ctx, from, versions, "")
	if err != nil {
		return nil, nil, err
	}

	metadata, err := bundle.ParseMetadata(data)

	return versions, metadata, err
}

// newestMetadata returns the metadata of the newest version that matches a request, and the versions
// without those that have no release.
func newestMetadata(
	ctx context.Context, from Source, versions []Version, requested string,
) ([]Version, []byte, error) {
	if remote, ok := from.(Remote); ok {
		return skipUnpublished(ctx, remote, versions, requested)
	}

	newest, err := Pick(versions, requested, "")
	if err != nil {
		return nil, nil, err
	}

	metadata, err := fetchMetadata(ctx, from, newest)

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

// fetchMetadata reads the metadata of a version of a local source, unless it is known.
func fetchMetadata(ctx context.Context, from Source, version Version) ([]byte, error) {
	if c, ok := from.(*ConfigMaps); ok {
		if known := c.Known.find(c.User, version); known != nil {
			return known, nil
		}
	}

	b, err := from.Fetch(ctx, version)
	if err != nil {
		return nil, err
	}

	return b.Metadata, nil
}

const (
	// maxKnown limits how many versions are known, and maxKnownSize how long the metadata of each is.
	maxKnown, maxKnownSize = 512, 16 << 10
)

// KnownMetadata keeps the metadata of the versions that were fetched last. The contracts that a version declares need
// not be read again then, as long as the version has not changed: the restart with a hundred providers would take 431
// requests instead of 331. It may be used by many goroutines.
type KnownMetadata struct{ versions *lru.Cache }

// NewKnownMetadata returns one that knows nothing.
func NewKnownMetadata() *KnownMetadata { return &KnownMetadata{versions: lru.New(maxKnown)} }

// knownVersion identifies the content of a version, and who may read it.
type knownVersion struct{ user, fingerprint string }

func (k *KnownMetadata) add(user string, version Version, metadata []byte) {
	if k != nil && version.Fingerprint != "" && len(metadata) <= maxKnownSize {
		k.versions.Add(knownVersion{user, version.Fingerprint}, metadata)
	}
}

// find returns the metadata of a version; nil if it is not known.
func (k *KnownMetadata) find(user string, version Version) []byte {
	if k == nil {
		return nil
	}

	known, found := k.versions.Get(knownVersion{user, version.Fingerprint})
	if !found {
		return nil
	}

	return known.([]byte)
}
