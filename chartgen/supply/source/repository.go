package source

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/opencontainers/go-digest"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
)

// Verifier decides whether an artifact is trusted. The reference is pinned to a digest. Its refusal
// is an *UntrustedError.
type Verifier interface {
	Verify(ctx context.Context, ref oci.Reference) error
}

// Access is how a registry is read.
type Access struct {
	Client *oci.Client
	// Verifier, if there is one, is asked about everything before it is used.
	Verifier Verifier
}

// OCIOptions say how a repository is read and what of it is trusted.
type OCIOptions struct {
	// Access is asked once, when something must be read, so it may read Secrets.
	Access func(ctx context.Context) (Access, error)
	// Digest that the manifest must have; empty means any.
	Digest string
	// Verified says that Access has a verifier: what was fetched without one is not what was
	// fetched with one.
	VerifySignatures bool
}

// WithClient is access that needs no Secret.
func OptionsForClient(client *oci.Client) OCIOptions {
	return OCIOptions{Access: func(context.Context) (Access, error) { return Access{Client: client}, nil }}
}

// repository is a repository in a registry whose tags are versions, or one tag or digest of it. It
// serves one reconcile at a time.
type repository struct {
	OCIOptions
	ref      oci.Reference
	provider bundle.Provider
	access   *Access
}

// open gives access to the registry.
func (r *repository) openAccess(ctx context.Context) (*Access, error) {
	if r.access == nil {
		access, err := r.Access(ctx)
		if err != nil {
			return nil, err
		}

		r.access = &access
	}

	return r.access, nil
}

// contentTag is a tag that store.Registry gives a second chart of a version.
var contentTag = regexp.MustCompile(`_[0-9a-f]{12}$`)

// Releases lists the tags that are versions, with or without a "v". An address with a tag is that
// one release, if the tag is a version.
func (r *repository) Versions(ctx context.Context) ([]Version, error) {
	if r.ref.Identifier() != "" {
		named := r.DefaultVersion()
		if named == "" {
			return nil, &NotFoundError{
				Message: fmt.Sprintf(
					"%s does not say which version it is; set spec.version to the exact version, such as v1.13.5",
					r.ref,
				),
			}
		}

		return []Version{r.Version(named)}, nil
	}

	access, err := r.openAccess(ctx)
	if err != nil {
		return nil, err
	}

	tags, err := access.Client.Tags(ctx, r.ref)
	if oci.IsReason(err, oci.NotFound) {
		return nil, &NotFoundError{Message: err.Error()}
	}

	if err != nil {
		return nil, err
	}

	var releases []Version

	for _, tag := range tags {
		version := tagVersion(tag)

		first := contentTag.ReplaceAllString(tag, "")
		if version == "" || first != tag && slices.Contains(tags, first) {
			continue
		}

		release := r.Version(version)
		if !slices.Contains(releases, release) { // v1.0.0 and 1.0.0
			releases = append(releases, release)
		}
	}

	if len(releases) == 0 {
		return nil, &NotFoundError{
			Message: fmt.Sprintf("none of the %d tags of %s is a version such as v1.13.5", len(tags), r.ref),
		}
	}

	sortNewestFirst(releases)

	return releases, nil
}

// Release is the release of an exact version, whether or not there is one: nobody is asked.
func (r *repository) Version(version string) Version {
	version = "v" + strings.TrimPrefix(version, "v")

	at := r.ref
	if at.Identifier() == "" {
		at = at.WithTag(oci.ChartTag(version))
	}

	if r.Digest != "" {
		at = at.WithDigest(digest.Digest(r.Digest))
	}

	origin := at.String()
	if r.VerifySignatures {
		origin += " with a verified signature"
	}

	return Version{Name: version, ID: version, Origin: origin}
}

// Named is the version that the address names by its tag; empty when it names none.
func (r *repository) DefaultVersion() string { return tagVersion(r.ref.Tag) }

// tagVersion is the version that a tag stands for, with its "v"; empty when it is none. Only whole
// versions count: a tag 1.13 moves.
func tagVersion(tag string) string {
	version := oci.ChartVersion(tag)
	if _, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v")); err != nil {
		return ""
	}

	return "v" + strings.TrimPrefix(version, "v")
}

// resolve finds a release, pins it to its digest and makes sure that it is trusted.
func (r *repository) resolve(ctx context.Context, release Version) (oci.Reference, error) {
	pinned, err := r.find(ctx, release)
	if oci.IsReason(err, oci.NotFound) {
		return pinned, &NotFoundError{Message: err.Error()}
	}

	if err != nil {
		return pinned, err
	}

	if r.Digest != "" && pinned.Digest != digest.Digest(r.Digest) {
		return pinned, &UntrustedError{
			Message: fmt.Sprintf(
				"%s has the digest %s, and spec.fetchConfig.digest asks for %s; find out who changed it, or correct the digest",
				r.ref,
				pinned.Digest,
				r.Digest,
			),
		}
	}

	if r.access.Verifier != nil {
		return pinned, r.access.Verifier.Verify(ctx, pinned)
	}

	return pinned, nil
}

// find pins a release. Without a tag or digest in the address, the tag is the version with or
// without its "v".
func (r *repository) find(ctx context.Context, release Version) (oci.Reference, error) {
	candidates := []oci.Reference{r.ref}
	switch named := r.DefaultVersion(); {
	case named != "" && named != release.Name:
		return r.ref, &NotFoundError{
			Message: fmt.Sprintf("version %s is not on offer; %s is %s", release.Name, r.ref, named),
		}
	case r.ref.Identifier() == "":
		tag := oci.ChartTag(release.Name)
		candidates = []oci.Reference{r.ref.WithTag(tag), r.ref.WithTag(strings.TrimPrefix(tag, "v"))}
	}

	access, err := r.openAccess(ctx)
	if err != nil {
		return r.ref, err
	}

	var first error

	for _, ref := range candidates {
		desc, err := access.Client.Resolve(ctx, ref)
		if err == nil {
			return ref.WithDigest(desc.Digest), nil
		}

		if !oci.IsReason(err, oci.NotFound) {
			return ref, err
		}

		if first == nil {
			first = err
		}
	}

	return r.ref, first
}

// Moved says where a release's tag leads now, when that is another manifest than the one in use.
// Who asks for a digest is not asked again.
func (r *repository) CheckTag(ctx context.Context, release Version, inUse Digests) (oci.Reference, error) {
	if r.ref.Digest != "" || r.Digest != "" {
		return oci.Reference{}, nil
	}

	now, err := r.find(ctx, release)
	switch missing := (*NotFoundError)(nil); {
	case oci.IsReason(err, oci.NotFound), errors.As(err, &missing):
		return oci.Reference{}, nil
	case err != nil || now.Digest == inUse.Manifest:
		return oci.Reference{}, err
	}

	return now, nil
}
