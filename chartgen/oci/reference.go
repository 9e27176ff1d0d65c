// Package oci is the client of OCI registries that all of Capstan shares. Responses are limited in
// size and time, verified by their digests, and requested again if that may help. Credentials are
// sent only to the registry they belong to and to the token service that it names. They are never
// part of an error and never logged.
package oci

import (
	"fmt"
	"strings"

	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
	"oras.land/oras-go/v2/registry"
)

// Prefixes of a reference as users write it.
const (
	scheme      = "oci://"
	schemePlain = "http://"
)

// Reference names a manifest in a registry or, with neither tag nor digest, a repository.
type Reference struct {
	// Registry is the host, with its port if it has one.
	Registry string
	// Repository is the path in the registry.
	Repository string
	// Tag and Digest may both be empty. If both are set, the digest wins.
	Tag    string
	Digest digest.Digest
	// PlainHTTP means that the registry is accessed without TLS.
	PlainHTTP bool
}

// Parse reads a reference of the form [oci://|http://]registry[:port]/repository[:tag][@digest].
// The prefix http:// means plain HTTP, as in cluster-api-operator.
func Parse(s string) (Reference, error) {
	rest, plain := strings.CutPrefix(strings.TrimPrefix(s, scheme), schemePlain)
	name, digested, hasDigest := strings.Cut(strings.TrimSuffix(rest, "/"), "@")

	parsed, err := registry.ParseReference(name)
	if err != nil || parsed.ValidateReferenceAsTag() != nil && parsed.Reference != "" {
		return Reference{}, fmt.Errorf(
			"%q is not an OCI reference; write it as oci://registry.example.com/path[:tag][@sha256:…]",
			s,
		)
	}

	ref := Reference{Registry: parsed.Registry, Repository: parsed.Repository, Tag: parsed.Reference, PlainHTTP: plain}
	if hasDigest {
		if ref.Digest, err = digest.Parse(digested); err != nil {
			return Reference{}, fmt.Errorf("%q: the digest is not sha256: and 64 hexadecimal digits: %w", s, err)
		}
	}

	return ref, nil
}

// ParseImage reads the reference of a container image as container runtimes do: the registry
// defaults to Docker Hub, and the tag to latest unless there is a digest.
func ParseImage(s string) (Reference, error) {
	named, err := reference.ParseDockerRef(s)
	if err != nil {
		return Reference{}, fmt.Errorf("%q is not an image reference: %w", s, err)
	}

	ref := Reference{Registry: reference.Domain(named), Repository: reference.Path(named)}
	if tagged, ok := named.(reference.Tagged); ok {
		ref.Tag = tagged.Tag()
	}

	if digested, ok := named.(reference.Digested); ok {
		ref.Digest = digested.Digest()
	}

	return ref, nil
}

// String returns the reference with its scheme, in the form that Parse reads.
func (r Reference) String() string {
	if r.PlainHTTP {
		return schemePlain + r.Name()
	}

	return scheme + r.Name()
}

// Name returns the reference without a scheme, as container runtimes write it.
func (r Reference) Name() string {
	name := r.Location()
	if r.Tag != "" {
		name += ":" + r.Tag
	}

	if r.Digest != "" {
		name += "@" + r.Digest.String()
	}

	return name
}

// Location returns the registry and the repository, without tag, digest and scheme.
func (r Reference) Location() string { return strings.TrimSuffix(r.Registry+"/"+r.Repository, "/") }

// Identifier returns the digest, or else the tag; empty for a repository.
func (r Reference) Identifier() string {
	if r.Digest != "" {
		return r.Digest.String()
	}

	return r.Tag
}

// WithTag returns a reference to a tag of the same repository, without a digest.
func (r Reference) WithTag(tag string) Reference {
	r.Tag = tag
	r.Digest = ""

	return r
}

// WithDigest returns the same reference pinned to a digest.
func (r Reference) WithDigest(d digest.Digest) Reference {
	r.Digest = d
	return r
}

// SignatureTag returns the tag under which cosign stores the signatures of a manifest.
func SignatureTag(manifest digest.Digest) string {
	return strings.Replace(manifest.String(), ":", "-", 1) + ".sig"
}

// Join returns the repository at a path below this one, without tag and digest.
func (r Reference) Join(path string) Reference {
	return Reference{
		Registry:   r.Registry,
		Repository: strings.Trim(r.Repository+"/"+path, "/"),
		PlainHTTP:  r.PlainHTTP,
	}
}

// ParseRepository reads the parent of repositories, [oci://|http://]registry[:port][/path]. Unlike
// Parse it accepts a registry without a path, and neither tag nor digest.
func ParseRepository(s string) (Reference, error) {
	rest, plain := strings.CutPrefix(strings.TrimPrefix(s, scheme), schemePlain)
	if host := strings.TrimSuffix(rest, "/"); !strings.Contains(host, "/") {
		whole := registry.Reference{Registry: host}
		if host == "" || whole.ValidateRegistry() != nil {
			return Reference{}, fmt.Errorf("%q is not an OCI repository; write it as oci://registry.example.com[/path]", s)
		}

		return Reference{Registry: host, PlainHTTP: plain}, nil
	}

	ref, err := Parse(s)
	if err == nil && ref.Identifier() != "" {
		err = fmt.Errorf("%q names one tag or digest; give the repository alone, as oci://registry.example.com/path", s)
	}

	return ref, err
}
