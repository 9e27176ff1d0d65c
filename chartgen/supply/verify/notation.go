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
	// typeNotation is the type of a manifest with a notation signature.
	typeNotation = "application/vnd.cncf.notary.signature"
	// trustStoreName is the name of the only trust store.
	trustStoreName = "capstan"
)

// Notation trusts what was signed with notation by a certificate that leads to one of some
// authorities.
type Notation struct {
	client   *oci.Client
	verifier notation.Verifier
}

// NewNotation makes a verifier of PEM certificates of authorities, or self-signed ones; names are
// for messages. A certificate's expiry counts; whether it was revoked is not asked, since that
// takes the network.
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

	policy := &trustpolicy.Document{Version: "1.0", TrustPolicies: []trustpolicy.TrustPolicy{{
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
	}}}

	v, err := verifier.New(policy, trusted, nil)
	if err != nil {
		return nil, err
	}

	return &Notation{client: client, verifier: v}, nil
}

// Verify looks for a signature of the manifest by a trusted certificate.
func (n *Notation) Verify(ctx context.Context, ref oci.Reference) error {
	subject, err := n.client.Resolve(ctx, ref)
	if err != nil {
		return err
	}

	manifests, err := signatures(ctx, n.client, ref, subject)
	if err != nil {
		return err
	}

	found := 0

	for _, manifest := range manifests {
		if manifest.Manifest.ArtifactType != typeNotation && manifest.Manifest.Config.MediaType != typeNotation ||
			len(manifest.Manifest.Layers) != 1 {
			continue
		}

		found++
		layer := manifest.Manifest.Layers[0]

		envelope, err := n.client.Blob(ctx, ref, layer, maxSignature)
		if err != nil {
			return err
		}

		_, err = n.verifier.Verify(ctx, subject, envelope, notation.VerifierVerifyOptions{
			ArtifactReference: ref.WithTag("").WithDigest(subject.Digest).Name(), SignatureMediaType: layer.MediaType,
		})
		if err == nil {
			return nil
		}
	}

	if found == 0 {
		return newUntrustedError(ref, "it has no notation signature; sign it with notation, or remove spec.fetchConfig.verify")
	}

	return newUntrustedError(
		ref,
		"none of its %d notation signatures is by a trusted certificate that is valid now; check the certificates in the Secret of spec.fetchConfig.verify",
		found,
	)
}

// certificateStore is the trust store: it has nothing but certificates of authorities.
type certificateStore []*x509.Certificate

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

		parsed, data = append(parsed, certificate), rest
	}

	if len(parsed) == 0 {
		return nil, errors.New("it holds none")
	}

	return parsed, nil
}
