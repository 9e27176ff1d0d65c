// Package verify decides by signatures which artifacts in OCI registries are trusted. Keys and
// certificates are given, and only the registry is contacted: no transparency log, revocation list
// or timestamp authority.
package verify

import (
	"context"
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

// New returns the verifier of spec.fetchConfig.verify for the data of the Secret that it names: public
// keys under keys that end in .pub for Cosign, or certificates under keys that end in .crt or .pem for
// Notation.
func New(program v1alpha2.VerificationProvider, client *oci.Client, data map[string][]byte) (source.Verifier, error) {
	if program == v1alpha2.VerifyNotation {
		return NewNotation(client, withSuffix(data, ".crt", ".pem"))
	}

	return NewCosign(client, withSuffix(data, ".pub"))
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
