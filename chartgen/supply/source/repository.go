package source

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/opencontainers/go-digest"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
)

// Verifier decides whether an artifact is trusted.
type Verifier interface {
	// Verify returns an *UntrustedError if the artifact is not trusted, or not as the version. The
	// reference is pinned to a digest.
	Verify(ctx context.Context, ref oci.Reference, version string) error
}

// Access is what a registry is read with.
type Access struct {
	Client *oci.Client
	// Verifier must accept everything before it is used; nil accepts everything.
	Verifier Verifier
}

// OCIOptions configure how a repository is read and what is trusted.
type OCIOptions struct {
	// Access is called once, before the first request. It may read Secrets.
	Access func(ctx context.Context) (Access, error)
	// Digest that the manifest must have, "sha256:…"; empty means any.
	Digest string
	// Trust identifies what Access's verifier accepts, in a form for users: the kind of signature,
	// and the keys and identities. It is part of the origin of a resolved version, so that content
	// that was stored under other conditions is not used. Nil means that nothing is verified.
	Trust func(ctx context.Context) (string, error)
}

// OptionsForClient returns the options to read with a client as it is, without a verifier.
func OptionsForClient(client *oci.Client) OCIOptions {
	return OCIOptions{Access: func(context.Context) (Access, error) { return Access{Client: client}, nil }}
}

// repository is what Artifact and Image have in common: a repository whose tags are versions, or
// one tag or digest in it. It is not safe for concurrent use.
type repository struct {
	OCIOptions
	ref      oci.Reference
	provider bundle.Provider
	// several reports whether what has a version's tag may also have the files of other versions.
	several bool
	// access is the result of OCIOptions.Access; nil before the first request.
	access *Access
}

// openAccess returns how to access the registry.
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

// Versions lists the tags that are versions, with or without a "v". If the address has a tag, that is
// the only version.
func (r *repository) Versions(ctx context.Context) ([]Version, error) {
	if r.ref.Identifier() != "" {
		name := r.DefaultVersion()
		if name == "" {
			return nil, &NotFoundError{
				Message: fmt.Sprintf(
					"the version of %s is not part of its tag; set spec.version to the exact version, such as v1.13.5",
					r.ref,
				),
			}
		}

		return []Version{r.Version(name)}, nil
	}

	access, err := r.openAccess(ctx)
	if err != nil {
		return nil, err
	}

	tags, err := access.Client.Tags(ctx, r.ref)
	if oci.IsReason(err, oci.NotFound) {
		return nil, &NotFoundError{Message: fmt.Sprintf("%s has no tags; %s; if the registry does not list tags, set "+
			"spec.version to an exact version such as v1.13.5", r.ref, howToProvide)}
	}

	if err != nil {
		return nil, err
	}

	versions := r.parseTags(tags)
	if len(versions) == 0 {
		return nil, &NotFoundError{
			Message: fmt.Sprintf("none of the %d tags of %s is a version such as v1.13.5", len(tags), r.ref),
		}
	}

	return versions, nil
}

// parseTags returns the versions among the tags, newest first.
func (r *repository) parseTags(tags []string) []Version {
	var versions []Version

	for _, tag := range tags {
		name := tagVersion(tag)
		if name == "" {
			continue
		}

		version := r.Version(name)
		if !slices.Contains(versions, version) { // 1.0.0 and v1.0.0 are the same version
			versions = append(versions, version)
		}
	}

	sortNewestFirst(versions)

	return versions
}

// Version returns the Version of a name. Its origin is the reference of its tag.
func (r *repository) Version(name string) Version {
	name = withV(name)
	version := Version{Name: name, ID: name, Origin: r.origin(r.ref)}

	if r.ref.Identifier() == "" {
		version.Origin = r.origin(r.ref.WithTag(oci.ChartTag(name)))
	}

	return version
}

// origin returns a reference with the digest that is required.
func (r *repository) origin(ref oci.Reference) string {
	if r.Digest != "" {
		ref = ref.WithDigest(digest.Digest(r.Digest))
	}

	return ref.String()
}

// trust returns what is required of the content; empty if nothing is verified.
func (r *repository) trust(ctx context.Context) (string, error) {
	if r.Trust == nil {
		return "", nil
	}

	return r.Trust(ctx)
}

// DefaultVersion returns the version that is the tag in the address; empty if there is none.
func (r *repository) DefaultVersion() string { return tagVersion(r.ref.Tag) }

// tagVersion returns the version of a tag with a "v"; empty if the tag is not a complete version.
// Tags such as 1.13 move with each release.
func tagVersion(tag string) string {
	version := oci.ChartVersion(tag)
	if _, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v")); err != nil {
		return ""
	}

	return withV(version)
}

// resolve returns the reference of a version pinned to its digest, after checking the digest and the
// signature that are required.
func (r *repository) resolve(ctx context.Context, version Version) (oci.Reference, error) {
	pinned, err := r.find(ctx, version)
	if err != nil {
		return pinned, err
	}

	if r.Digest != "" && pinned.Digest != digest.Digest(r.Digest) {
		return pinned, &UntrustedError{
			Message: fmt.Sprintf(
				"%s has the digest %s, and spec.fetchConfig.digest asks for %s; "+
					"find out who changed it, or correct the digest",
				r.ref,
				pinned.Digest,
				r.Digest,
			),
		}
	}

	if r.access.Verifier != nil {
		return pinned, r.access.Verifier.Verify(ctx, pinned, cmp.Or(r.DefaultVersion(), version.Name))
	}

	return pinned, nil
}

// find returns the reference of a version pinned to its current digest. If the address has neither
// tag nor digest, the tag is the version with or without its "v".
func (r *repository) find(ctx context.Context, version Version) (oci.Reference, error) {
	if r.isOther(version) && !r.several {
		return r.ref, r.otherVersion(version)
	}

	access, err := r.openAccess(ctx)
	if err != nil {
		return r.ref, err
	}

	candidates := []oci.Reference{r.ref}
	if r.ref.Identifier() == "" {
		tag := oci.ChartTag(version.Name)
		candidates = []oci.Reference{r.ref.WithTag(tag), r.ref.WithTag(withoutV(tag))}
	}

	for _, ref := range candidates {
		desc, err := access.Client.Resolve(ctx, ref)
		if err == nil {
			return ref.WithDigest(desc.Digest), nil
		}

		if !oci.IsReason(err, oci.NotFound) {
			return ref, err
		}
	}

	return r.ref, missing(candidates)
}

// howToProvide is the fix for a version that a registry lacks.
const howToProvide = "copy the version there, for example with `capstan mirror`, or correct the path or the version"

// missing returns the error for a version that has none of the references, of which the last one is that of a chart.
func missing(candidates []oci.Reference) error {
	message := "there is no " + candidates[len(candidates)-1].String()
	if len(candidates) > 1 {
		message += ", nor the tag " + candidates[0].Tag
	}

	return &NotFoundError{Message: message + "; " + howToProvide}
}

// isOther reports whether a version is not that of the tag in the address.
func (r *repository) isOther(version Version) bool {
	name := r.DefaultVersion()
	return name != "" && name != version.Name
}

// otherVersion returns the error for a version that is not that of the tag in the address.
func (r *repository) otherVersion(version Version) error {
	return &NotFoundError{
		Message: fmt.Sprintf("version %s is not on offer; %s is %s", version.Name, r.ref, r.DefaultVersion()),
	}
}
