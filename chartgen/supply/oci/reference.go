// Package oci reads and writes OCI registries: the one client that all of Capstan shares. What
// comes from a registry is bounded in size and time, verified by its digest, and asked for again
// where that may help. Credentials go to the registry they are meant for and to the token service
// that it names, are never part of an error, and are never logged.
package oci

import (
	"fmt"
	"strings"

	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
	"oras.land/oras-go/v2/registry"
)

// Prefixes of a reference as people write it.
const (
	scheme      = "oci://"
	schemePlain = "http://"
)

// Reference names something in a registry, or a repository of it when it has neither tag nor
// digest.
type Reference struct {
	// Registry is the host, with its port if it has one.
	Registry string
	// Repository is the path in the registry.
	Repository string
	// Tag and Digest may both be empty; the digest wins.
	Tag    string
	Digest digest.Digest
	// PlainHTTP says that the registry speaks HTTP without TLS.
	PlainHTTP bool
}

// Parse reads [oci://|http://]registry[:port]/repository[:tag][@digest]. http:// means plain HTTP,
// as for cluster-api-operator.
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

// ParseImage reads a container image's reference as container runtimes do: without a registry it is
// Docker Hub's, without tag and digest it is the tag latest.
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

// String is the reference with its scheme, good for Parse and for people.
func (r Reference) String() string {
	if r.PlainHTTP {
		return schemePlain + r.Name()
	}

	return scheme + r.Name()
}

// Name is the reference without its scheme, as container runtimes write it.
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

// Location is the registry and the path, without anything else.
func (r Reference) Location() string { return strings.TrimSuffix(r.Registry+"/"+r.Repository, "/") }

// Identifier is what the registry is asked for: the digest, else the tag.
func (r Reference) Identifier() string {
	if r.Digest != "" {
		return r.Digest.String()
	}

	return r.Tag
}

// WithTag is another tag of the repository.
func (r Reference) WithTag(tag string) Reference {
	r.Tag, r.Digest = tag, ""
	return r
}

// WithDigest is the same reference, pinned.
func (r Reference) WithDigest(d digest.Digest) Reference {
	r.Digest = d
	return r
}

// Join is a repository below this one, without tag and digest.
func (r Reference) Join(path string) Reference {
	return Reference{Registry: r.Registry, Repository: strings.Trim(r.Repository+"/"+path, "/"), PlainHTTP: r.PlainHTTP}
}

// ParseRepository reads where repositories are kept: like Parse, without tag and digest, and the
// path may be empty: a whole registry.
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
