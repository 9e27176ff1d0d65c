// Package verify decides by signatures which artifacts of OCI registries are trusted. It works
// without any network but the registry's: keys and certificates are given, and no transparency log,
// revocation list or timestamp authority is asked.
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

// New makes the verifier of spec.fetchConfig.verify from the data of the Secret that it names: for
// Cosign public keys under keys that end in .pub, for Notation certificates under keys that end in
// .crt or .pem.
func New(program v1alpha2.VerificationProvider, client *oci.Client, data map[string][]byte) (source.Verifier, error) {
	if program == v1alpha2.VerifyNotation {
		return NewNotation(client, withSuffix(data, ".crt", ".pem"))
	}

	return NewCosign(client, withSuffix(data, ".pub"))
}

// endingIn are the entries whose keys have one of these endings.
func withSuffix(data map[string][]byte, endings ...string) map[string][]byte {
	found := maps.Clone(data)
	maps.DeleteFunc(found, func(key string, _ []byte) bool {
		return !slices.ContainsFunc(endings, func(ending string) bool { return strings.HasSuffix(key, ending) })
	})

	return found
}

// signatures reads the manifests that may hold signatures of a manifest: those that refer to it,
// and those under the given tags.
func signatures(
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

	for _, r := range referrers {
		tags = append(tags, ref.WithDigest(r.Digest))
	}

	var manifests []*oci.Artifact

	for _, candidate := range tags {
		manifest, err := client.Artifact(ctx, candidate)
		switch {
		case oci.IsReason(err, oci.NotFound), oci.IsReason(err, oci.Invalid): // no signature, then
		case err != nil:
			return nil, err
		default:
			manifests = append(manifests, manifest)
		}
	}

	return manifests, nil
}

// refuse makes the error of an artifact that is not trusted.
func newUntrustedError(ref oci.Reference, format string, args ...any) error {
	return &source.UntrustedError{Message: fmt.Sprintf("%s is not trusted: %s", ref, fmt.Sprintf(format, args...))}
}
