package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/transport"
)

// Access configures requests to a registry.
type Access struct {
	Client *oci.Client
	// Verify returns an error of the kind transport.Unverified if a reference with a digest is not trusted, or is signed
	// as another version than the given one, which may be empty. Nil trusts everything.
	Verify func(ctx context.Context, ref oci.Reference, version string) error
}

// OCIOptions configure how a repository is read and what is trusted.
type OCIOptions struct {
	// Access is called once, before the first request. It may read Secrets.
	Access func(ctx context.Context) (Access, error)
	// Digest that the manifest must have, "sha256:…"; empty means any.
	Digest string
	// Trust identifies what Access's verifier accepts, in a form for users: the kind of signature,
	// and the keys and identities. Nil means that nothing is verified.
	Trust func(ctx context.Context) (string, error)
}

// OptionsForClient returns the options to read with a client as it is, without a verifier.
func OptionsForClient(client *oci.Client) OCIOptions {
	return OCIOptions{Access: func(context.Context) (Access, error) { return Access{Client: client}, nil }}
}

// repository is a repository in a registry whose tags are versions, or one tag or digest in it. It is not safe for
// concurrent use.
type repository struct {
	OCIOptions
	ref      oci.Reference
	provider bundle.Provider
	// access is the result of OCIOptions.Access; nil before the first request.
	access *Access
}

// newRepository returns the repository at an address.
func newRepository(address string, provider bundle.Provider, options OCIOptions) (*repository, error) {
	ref, err := oci.Parse(address)
	if err != nil {
		return nil, &transport.Error{Kind: transport.Refused, Problem: err.Error()}
	}

	return &repository{OCIOptions: options, ref: ref, provider: provider}, nil
}

// source returns the source of a place in the repository.
func (r *repository) source(place Place, kind string) *Source {
	return &Source{
		Place: place, Provider: r.provider, Kind: kind, Default: tagVersion(r.ref.Tag), Trust: r.Trust, exact: r.version,
	}
}

// client returns what the registry is read with.
func (r *repository) client(ctx context.Context) (*oci.Client, error) {
	if r.access == nil {
		access, err := r.Access(ctx)
		if err != nil {
			return nil, err
		}

		r.access = &access
	}

	return r.access.Client, nil
}

// Versions lists the tags that are versions, with or without a "v". If the address has a tag, that is
// the only version.
func (r *repository) Versions(ctx context.Context) ([]Version, error) {
	if r.ref.Identifier() != "" {
		name := tagVersion(r.ref.Tag)
		if name == "" {
			return nil, &transport.Error{
				Kind: transport.NotFound, Place: r.ref.String(), Problem: "its tag is not a version",
				Fix: "set spec.version to the exact version, such as v1.13.5",
			}
		}

		return []Version{r.version(name)}, nil
	}

	client, err := r.client(ctx)
	if err != nil {
		return nil, err
	}

	tags, err := client.Tags(ctx, r.ref)
	if IsNotFound(err) {
		return nil, &transport.Error{
			Kind: transport.NotFound, Place: r.ref.String(), Problem: "it has no tags",
			Fix: howToProvide + "; if the registry does not list tags, set spec.version to an exact version such as v1.13.5",
		}
	}

	if err != nil {
		return nil, err
	}

	var versions []Version

	seen := map[string]bool{} // 1.0.0 and v1.0.0 are the same version

	for _, tag := range tags {
		if name := tagVersion(tag); name != "" && !seen[name] {
			seen[name] = true

			versions = append(versions, r.version(name))
		}
	}

	if len(versions) == 0 {
		return nil, &transport.Error{
			Kind: transport.NotFound, Place: r.ref.String(),
			Problem: fmt.Sprintf("none of its %d tags is a version such as v1.13.5", len(tags)),
		}
	}

	sortNewestFirst(versions)

	return versions, nil
}

// version returns a version by its name. Its origin is the reference of its tag, with the digest that is required.
func (r *repository) version(name string) Version {
	name = withV(name)

	ref := r.ref
	if ref.Identifier() == "" {
		ref = ref.WithTag(oci.ChartTag(name))
	}

	if r.Digest != "" {
		ref = ref.WithDigest(digest.Digest(r.Digest))
	}

	return Version{Name: name, ID: name, Origin: Origin{Place: ref.String()}}
}

// tagVersion returns the version of a tag with a "v"; empty if the tag is not a complete version.
func tagVersion(tag string) string {
	version := oci.ChartVersion(tag)
	if !isComplete(version) {
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
		return pinned, &transport.Error{
			Kind: transport.Unverified, Place: r.ref.String(),
			Problem: fmt.Sprintf("it has the digest %s, and spec.fetchConfig.digest asks for %s", pinned.Digest, r.Digest),
			Fix:     "find out who changed it, or correct the digest",
		}
	}

	if r.access.Verify != nil {
		err = r.access.Verify(ctx, pinned, cmp.Or(tagVersion(r.ref.Tag), version.Name))
	}

	return pinned, err
}

// find returns the reference of a version pinned to its current digest. If the address has neither
// tag nor digest, the tag is the version with or without its "v".
func (r *repository) find(ctx context.Context, version Version) (oci.Reference, error) {
	client, err := r.client(ctx)
	if err != nil {
		return r.ref, err
	}

	candidates := []oci.Reference{r.ref}
	if r.ref.Identifier() == "" {
		tag := oci.ChartTag(version.Name)
		candidates = []oci.Reference{r.ref.WithTag(tag), r.ref.WithTag(withoutV(tag))}
	}

	for _, ref := range candidates {
		desc, err := client.Resolve(ctx, ref)
		if err == nil {
			return ref.WithDigest(desc.Digest), nil
		}

		if !IsNotFound(err) {
			return ref, err
		}
	}

	missing := &transport.Error{
		Kind: transport.NotFound, Problem: "there is no " + candidates[len(candidates)-1].String(), Fix: howToProvide,
	}
	if len(candidates) > 1 {
		missing.Problem += ", nor the tag " + candidates[0].Tag
	}

	return r.ref, missing
}

// damaged returns the error of reading what the tag of a version refers to. If that is missing, the version is not
// unpublished, for which an older one would be chosen, but damaged.
func damaged(err error) error {
	e := &transport.Error{}
	if !errors.As(err, &e) || e.Kind != transport.NotFound {
		return err
	}

	return &transport.Error{
		Kind: transport.Invalid, Place: e.Place, Problem: "the registry has lost a part of it", Fix: "push the version again",
	}
}

// howToProvide is the fix for a version that a registry lacks.
const howToProvide = "copy the version there, for example with `capstan mirror`, or correct the path or the version"

// isOther reports whether a version is not that of the tag in the address.
func (r *repository) isOther(version Version) bool {
	name := tagVersion(r.ref.Tag)
	return name != "" && name != version.Name
}

// otherVersion returns the error for a version that is not that of the tag in the address.
func (r *repository) otherVersion(version Version) error {
	return &transport.Error{
		Kind: transport.NotFound, Problem: "version " + version.Name + " is not available",
		Fix: fmt.Sprintf("%s is %s", r.ref, tagVersion(r.ref.Tag)),
	}
}
