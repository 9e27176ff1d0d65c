package verify

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/notaryproject/notation-go"
	"github.com/notaryproject/notation-go/verifier"
	"github.com/notaryproject/notation-go/verifier/trustpolicy"
	"github.com/notaryproject/notation-go/verifier/truststore"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/capstan-project/capstan/chartgen/supply/oci"
)

const (
	// typeNotation is the artifact type of a manifest with a notation signature.
	typeNotation = "application/vnd.cncf.notary.signature"
	// trustStoreName is the name of the only trust store.
	trustStoreName = "capstan"
)

// signedByIdentity trusts artifacts that were signed by the program notation with a certificate that one of some
// authorities issued to one of some identities.
type signedByIdentity struct {
	client   *oci.Client
	policy   Policy
	verifier notation.Verifier
}

// newNotation returns a verifier for PEM certificates, of authorities or self-signed. Certificates must
// not have expired. Revocation is not checked, since that would require network access.
func newNotation(client *oci.Client, policy Policy) (*signedByIdentity, error) {
	var trusted certificateStore

	certificates := policy.trusted()
	for _, name := range slices.Sorted(maps.Keys(certificates)) {
		parsed, err := parseCertificates(certificates[name])
		if err != nil {
			return nil, fmt.Errorf("%s is not a certificate in PEM: %w", name, err)
		}

		trusted = append(trusted, parsed...)
	}

	if len(trusted) == 0 {
		return nil, errors.New(
			"no key of the Secret with the trusted certificates ends in .crt or .pem; put the authority's certificate there",
		)
	}

	isNoSubject := func(identity string) bool { return !strings.HasPrefix(identity, "x509.subject:") }
	if len(policy.Identities) == 0 || slices.ContainsFunc(policy.Identities, isNoSubject) {
		return nil, errors.New("trustedIdentities must list the subjects of the certificates that may sign, " +
			"such as x509.subject: C=DE, ST=Berlin, O=Example; otherwise every certificate of the authority would be trusted")
	}

	v, err := verifier.New(newTrustPolicy(policy.Identities), trusted, nil)
	if err != nil {
		return nil, fmt.Errorf("trustedIdentities: %w", err)
	}

	return &signedByIdentity{client: client, policy: policy, verifier: v}, nil
}

// newTrustPolicy returns a policy that accepts some identities issued by the certificates in the trust
// store.
func newTrustPolicy(identities []string) *trustpolicy.Document {
	return &trustpolicy.Document{
		Version: "1.0",
		TrustPolicies: []trustpolicy.TrustPolicy{{
			Name:           "capstan",
			RegistryScopes: []string{"*"},
			SignatureVerification: trustpolicy.SignatureVerification{
				VerificationLevel: trustpolicy.LevelStrict.Name,
				Override: map[trustpolicy.ValidationType]trustpolicy.ValidationAction{
					trustpolicy.TypeRevocation: trustpolicy.ActionSkip,
				},
			},
			TrustStores:       []string{string(truststore.TypeCA) + ":" + trustStoreName},
			TrustedIdentities: identities,
		}},
	}
}

// Verify returns a *source.UntrustedError unless the manifest has a signature by a trusted
// certificate that does not name another version.
func (n *signedByIdentity) Verify(ctx context.Context, ref oci.Reference, version string) error {
	subject, err := n.client.Resolve(ctx, ref)
	if err != nil {
		return err
	}

	manifests, err := findSignatures(ctx, n.client, ref, subject)
	if err != nil {
		return err
	}

	found := 0
	other := ""

	for _, manifest := range manifests {
		if !isNotation(manifest) {
			continue
		}

		found++
		layer := manifest.Manifest.Layers[0]

		envelope, err := n.client.Blob(ctx, ref, layer, maxSignature)
		if err != nil {
			return err
		}

		outcome, err := n.verifier.Verify(ctx, subject, envelope, notation.VerifierVerifyOptions{
			ArtifactReference:  ref.WithTag("").WithDigest(subject.Digest).Name(),
			SignatureMediaType: layer.MediaType,
		})
		if err != nil {
			continue
		}

		metadata, err := outcome.UserMetadata()
		if err != nil {
			continue
		}

		if other = otherVersion(version, metadata[ocispec.AnnotationVersion]); other == "" {
			return checkManifest(ctx, n.client, ref, version)
		}
	}

	switch {
	case other != "":
		return newVersionError(ref, other, version)
	case found == 0:
		return newUntrustedError(ref, "it has no notation signature; sign it with a certificate that %s trusts",
			n.policy.KeysFrom)
	}

	return newUntrustedError(
		ref,
		"none of its %d notation signatures is by a trusted identity with a certificate that is valid now; "+
			"check the certificates in %s, and trustedIdentities",
		found,
		n.policy.KeysFrom,
	)
}

// isNotation reports whether an artifact is a notation signature, which has exactly one layer.
func isNotation(a *oci.Artifact) bool {
	hasType := a.Manifest.ArtifactType == typeNotation || a.Manifest.Config.MediaType == typeNotation

	return hasType && len(a.Manifest.Layers) == 1
}

// certificateStore is the only trust store. All of its certificates are those of authorities.
type certificateStore []*x509.Certificate

// GetCertificates implements truststore.X509TrustStore.
func (s certificateStore) GetCertificates(
	_ context.Context,
	kind truststore.Type,
	name string,
) ([]*x509.Certificate, error) {
	if kind != truststore.TypeCA || name != trustStoreName {
		return nil, nil
	}

	return s, nil
}

// parseCertificates parses one or more PEM certificates.
func parseCertificates(data []byte) ([]*x509.Certificate, error) {
	var parsed []*x509.Certificate

	for {
		block, rest := pem.Decode(data)
		if block == nil {
			break
		}

		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}

		parsed = append(parsed, certificate)
		data = rest
	}

	if len(parsed) == 0 {
		return nil, errors.New("it holds none")
	}

	return parsed, nil
}
