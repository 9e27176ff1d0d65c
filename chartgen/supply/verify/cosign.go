package verify

import (
	"bytes"
	"context"
	"crypto"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/dsse"

	"github.com/capstan-project/capstan/chartgen/supply/oci"
)

// Formats in which cosign stores signatures in a registry. All versions can store a payload in a
// layer, of a manifest whose tag contains the digest or of a referrer. Since version 3, the default is
// a sigstore bundle in a referrer.
const (
	typeSimpleSigning   = "application/vnd.dev.cosign.simplesigning.v1+json"
	typeBundle          = "application/vnd.dev.sigstore.bundle"
	typeStatement       = "application/vnd.in-toto+json"
	predicateSign       = "https://sigstore.dev/cosign/sign/v1"
	annotationSignature = "dev.cosignproject.cosign/signature"
)

// maxSignatures is the maximum number of signatures in a manifest that are checked.
const maxSignatures = 100

// Cosign trusts artifacts that were signed by cosign with one of some keys.
type Cosign struct {
	client *oci.Client
	keys   []signature.Verifier
}

// NewCosign returns a verifier for PEM public keys. Their names in the map are used in errors.
func NewCosign(client *oci.Client, keys map[string][]byte) (*Cosign, error) {
	if len(keys) == 0 {
		return nil, errors.New("no key of the Secret with the trusted public keys ends in .pub; put cosign.pub there")
	}

	c := &Cosign{client: client}

	for _, name := range slices.Sorted(maps.Keys(keys)) {
		key, err := cryptoutils.UnmarshalPEMToPublicKey(keys[name])
		if err != nil {
			return nil, fmt.Errorf("%s is not a public key in PEM, as cosign generate-key-pair writes it", name)
		}

		verifier, err := signature.LoadVerifier(key, crypto.SHA256)
		if err != nil {
			return nil, fmt.Errorf("%s is not a key that cosign uses: %w", name, err)
		}

		c.keys = append(c.keys, verifier)
	}

	return c, nil
}

// Verify returns a *source.UntrustedError unless the manifest has a signature by one of the keys.
func (c *Cosign) Verify(ctx context.Context, ref oci.Reference) error {
	subject, err := c.client.Resolve(ctx, ref)
	if err != nil {
		return err
	}

	tag := ref.WithTag(strings.Replace(subject.Digest.String(), ":", "-", 1) + ".sig")

	manifests, err := findSignatures(ctx, c.client, ref, subject, tag)
	if err != nil {
		return err
	}

	found := 0

	for _, layer := range signatureLayers(manifests) {
		found++

		data, err := c.client.Blob(ctx, ref, layer, maxSignature)
		if err != nil {
			return err
		}

		if c.isValid(layer, data, subject.Digest) {
			return nil
		}
	}

	if found == 0 {
		return newUntrustedError(
			ref,
			"it has no cosign signature; sign it with cosign, or remove spec.fetchConfig.verify",
		)
	}

	return newUntrustedError(
		ref,
		"none of its %d cosign signatures is by a trusted key; check the keys in the Secret of spec.fetchConfig.verify",
		found,
	)
}

// signatureLayers returns the layers that are signatures by their media type.
func signatureLayers(manifests []*oci.Artifact) []ocispec.Descriptor {
	var found []ocispec.Descriptor

	for _, manifest := range manifests {
		layers := manifest.Manifest.Layers
		for _, layer := range layers[:min(len(layers), maxSignatures)] {
			if layer.MediaType == typeSimpleSigning || strings.HasPrefix(layer.MediaType, typeBundle) {
				found = append(found, layer)
			}
		}
	}

	return found
}

// isValid reports whether a layer is a signature of the subject by one of the keys.
func (c *Cosign) isValid(layer ocispec.Descriptor, data []byte, subject digest.Digest) bool {
	if layer.MediaType == typeSimpleSigning {
		return c.isValidPayload(layer.Annotations[annotationSignature], data, subject)
	}

	return c.isValidBundle(data, subject)
}

// isValidPayload reports whether the signature of a payload is valid and the payload names the
// subject.
func (c *Cosign) isValidPayload(encoded string, payload []byte, subject digest.Digest) bool {
	sig, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return false
	}

	valid := slices.ContainsFunc(c.keys, func(key signature.Verifier) bool {
		return key.VerifySignature(bytes.NewReader(sig), bytes.NewReader(payload)) == nil
	})
	if !valid {
		return false
	}

	var signed struct {
		Critical struct {
			Type  string `json:"type"`
			Image struct {
				Digest digest.Digest `json:"docker-manifest-digest"`
			} `json:"image"`
		} `json:"critical"`
	}
	if err := json.Unmarshal(payload, &signed); err != nil {
		return false
	}

	return signed.Critical.Type == "cosign container image signature" && signed.Critical.Image.Digest == subject
}

// isValidBundle reports whether the signature of a sigstore bundle is valid and its statement is a
// signature of the subject. Attestations are bundles with other statements.
func (c *Cosign) isValidBundle(data []byte, subject digest.Digest) bool {
	var bundle struct {
		Envelope json.RawMessage `json:"dsseEnvelope"`
	}
	if err := json.Unmarshal(data, &bundle); err != nil {
		return false
	}

	var envelope struct {
		Payload     []byte `json:"payload"`
		PayloadType string `json:"payloadType"`
	}
	if err := json.Unmarshal(bundle.Envelope, &envelope); err != nil || envelope.PayloadType != typeStatement {
		return false
	}

	valid := slices.ContainsFunc(c.keys, func(key signature.Verifier) bool {
		return dsse.WrapVerifier(key).VerifySignature(bytes.NewReader(bundle.Envelope), nil) == nil
	})
	if !valid {
		return false
	}

	var statement struct {
		PredicateType string `json:"predicateType"`
		Subject       []struct {
			Digest map[string]string `json:"digest"`
		} `json:"subject"`
	}
	if err := json.Unmarshal(envelope.Payload, &statement); err != nil || statement.PredicateType != predicateSign {
		return false
	}

	for _, s := range statement.Subject {
		if s.Digest[subject.Algorithm().String()] == subject.Encoded() {
			return true
		}
	}

	return false
}
