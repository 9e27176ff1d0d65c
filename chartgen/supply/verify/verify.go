// Package verify decides by cosign's signatures which artifacts in OCI registries are trusted. Public keys are given,
// and only the registry is contacted: no transparency log and no timestamp authority.
package verify

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/capstan-project/capstan/chartgen/supply/oci"
	"github.com/capstan-project/capstan/chartgen/supply/source"
)

// maxSignature is the maximum size of a signature in bytes.
const maxSignature = 1 << 20

// Policy is what artifacts are verified with.
type Policy struct {
	// Keys are the data of a Secret: public keys under keys that end in .pub. Everything else is ignored.
	Keys map[string][]byte
	// KeysFrom is the place of the keys for messages, for example "Secret default/keys".
	KeysFrom string
}

// Verifier returns the verifier of the policy.
func (p Policy) Verifier(client *oci.Client) (source.Verifier, error) {
	return newCosign(client, p)
}

// String identifies what the policy trusts: it is another text for other keys.
func (p Policy) String() string {
	h := sha256.New()
	keys := p.trusted()

	for _, name := range slices.Sorted(maps.Keys(keys)) {
		fmt.Fprintf(h, "%d %d ", len(name), len(keys[name]))
		h.Write([]byte(name))
		h.Write(keys[name])
	}

	return fmt.Sprintf("signed with Cosign, by keys in %s (sha256:%x)", p.KeysFrom, h.Sum(nil))
}

// trusted returns the public keys.
func (p Policy) trusted() map[string][]byte {
	found := maps.Clone(p.Keys)
	maps.DeleteFunc(found, func(key string, _ []byte) bool { return !strings.HasSuffix(key, ".pub") })

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
