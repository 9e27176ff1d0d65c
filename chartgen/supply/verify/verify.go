// Package verify decides by signatures which artifacts in OCI registries are trusted. Keys and
// certificates are given, and only the registry is contacted: no transparency log, revocation list
// or timestamp authority.
package verify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
	"github.com/capstan-project/capstan/chartgen/supply/source"
)

// maxSignature is the maximum size of a signature in bytes.
const maxSignature = 1 << 20

// Policy is what artifacts are verified with.
type Policy struct {
	// Provider is the signing tool.
	Provider v1alpha2.VerificationProvider
	// Keys are the data of a Secret: public keys under keys that end in .pub for Cosign, or
	// certificates under keys that end in .crt or .pem for Notation. Everything else is ignored.
	Keys map[string][]byte
	// KeysFrom is the place of the keys for messages, for example "Secret default/keys".
	KeysFrom string
	// Identities are the trusted subjects of certificates, as in notation's trust policy. Notation
	// requires them.
	Identities []string
}

// Verifier returns the verifier of the policy.
func (p Policy) Verifier(client *oci.Client) (source.Verifier, error) {
	if p.Provider == v1alpha2.VerifyNotation {
		return newNotation(client, p)
	}

	return newCosign(client, p)
}

// String identifies what the policy trusts: it is another text for other keys or identities.
func (p Policy) String() string {
	h := sha256.New()
	keys := p.trusted()

	for _, name := range slices.Sorted(maps.Keys(keys)) {
		fmt.Fprintf(h, "%d %d ", len(name), len(keys[name]))
		h.Write([]byte(name))
		h.Write(keys[name])
	}

	identities := ""
	if len(p.Identities) > 0 {
		identities = fmt.Sprintf(" and identities %q", slices.Sorted(slices.Values(p.Identities)))
	}

	return fmt.Sprintf("signed with %s, by keys in %s (sha256:%x)%s",
		cmp.Or(p.Provider, v1alpha2.VerifyCosign), p.KeysFrom, h.Sum(nil), identities)
}

// trusted returns the keys that the signing tool uses.
func (p Policy) trusted() map[string][]byte {
	if p.Provider == v1alpha2.VerifyNotation {
		return withSuffix(p.Keys, ".crt", ".pem")
	}

	return withSuffix(p.Keys, ".pub")
}

// withSuffix returns the entries whose keys have one of the suffixes.
func withSuffix(data map[string][]byte, suffixes ...string) map[string][]byte {
	found := maps.Clone(data)
	maps.DeleteFunc(found, func(key string, _ []byte) bool {
		return !slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(key, suffix) })
	})

	return found
}

// findSignatures reads the manifests that may have signatures of a manifest: those that refer to it,
// and those of the given tags. Tags that do not exist are ignored.
func findSignatures(
	ctx context.Context,
	client *oci.Client,
	ref oci.Reference,
	subject ocispec.Descriptor,
	tags ...oci.Reference,
) ([]*oci.Artifact, error) {
	referrers, err := client.Referrers(ctx, ref, subject)
	if err != nil {
		return nil, err
	}

	candidates := slices.Clone(tags)
	for _, r := range referrers {
		candidates = append(candidates, ref.WithDigest(r.Digest))
	}

	var manifests []*oci.Artifact

	for _, candidate := range candidates {
		manifest, err := client.Artifact(ctx, candidate)
		if oci.IsReason(err, oci.NotFound) || oci.IsReason(err, oci.Invalid) {
			continue
		}

		if err != nil {
			return nil, err
		}

		manifests = append(manifests, manifest)
	}

	return manifests, nil
}

// newUntrustedError returns the error of an artifact that is not trusted.
func newUntrustedError(ref oci.Reference, format string, args ...any) error {
	return &source.UntrustedError{Message: fmt.Sprintf("%s is not trusted: %s", ref, fmt.Sprintf(format, args...))}
}
