package verify

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/notaryproject/notation-go"
	"github.com/notaryproject/notation-go/verifier"
	"github.com/notaryproject/notation-go/verifier/trustpolicy"
	"github.com/notaryproject/notation-go/verifier/truststore"

	"github.com/capstan-project/capstan/chartgen/supply/oci"
)

const (
	// typeNotation is the artifact type of a manifest with a notation signature.
	typeNotation = "application/vnd.cncf.notary.signature"
	// trustStoreName is the name of the only trust store.
	trustStoreName = "capstan"
)

// Notation trusts artifacts that were signed by notation with a certificate that one of some
// authorities issued.
type Notation struct {
	client   *oci.Client
	verifier notation.Verifier
}

// NewNotation returns a verifier for PEM certificates, of authorities or self-signed. Their names in
// the map are used in errors. Certificates must not have expired. Revocation is not checked, since that
// would require network access.
func NewNotation(client *oci.Client, certificates map[string][]byte) (*Notation, error) {
	var trusted certificateStore

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

	v, err := verifier.New(newTrustPolicy(), trusted, nil)
	if err != nil {
		return nil, err
	}

	return &Notation{client: client, verifier: v}, nil
}

// newTrustPolicy returns a policy that accepts any identity issued by the certificates in the trust
// store.
func newTrustPolicy() *trustpolicy.Document {
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
			TrustedIdentities: []string{"*"},
		}},
	}
}

// Verify returns a *source.UntrustedError unless the manifest has a signature by a trusted
// certificate.
func (n *Notation) Verify(ctx context.Context, ref oci.Reference) error {
	subject, err := n.client.Resolve(ctx, ref)
	if err != nil {
		return err
	}

	manifests, err := findSignatures(ctx, n.client, ref, subject)
	if err != nil {
		return err
	}

	found := 0

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

		_, err = n.verifier.Verify(ctx, subject, envelope, notation.VerifierVerifyOptions{
			ArtifactReference:  ref.WithTag("").WithDigest(subject.Digest).Name(),
			SignatureMediaType: layer.MediaType,
		})
		if err == nil {
			return nil
		}
	}

	if found == 0 {
		return newUntrustedError(
			ref,
			"it has no notation signature; sign it with notation, or remove spec.fetchConfig.verify",
		)
	}

	return newUntrustedError(
		ref,
		"none of its %d notation signatures is by a trusted certificate that is valid now; "+
			"check the certificates in the Secret of spec.fetchConfig.verify",
		found,
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
