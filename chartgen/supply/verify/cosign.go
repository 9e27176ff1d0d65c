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

// How cosign keeps signatures in a registry: in all versions as a payload under a tag made of the
// digest, or as a referrer; since version 3 as a bundle that is a referrer.
const (
	typeSimpleSigning    = "application/vnd.dev.cosign.simplesigning.v1+json"
	typeBundle           = "application/vnd.dev.sigstore.bundle"
	typeStatement        = "application/vnd.in-toto+json"
	predicateSign        = "https://sigstore.dev/cosign/sign/v1"
	annotationSignature  = "dev.cosignproject.cosign/signature"
	maxSignature         = 1 << 20
	maxSignaturesPerFile = 100
)

// Cosign trusts what one of some keys has signed with cosign.
type Cosign struct {
	client *oci.Client
	keys   []signature.Verifier
}

// NewCosign makes a verifier of PEM public keys; names are for messages.
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

// Verify looks for a signature of the manifest that one of the keys made.
func (c *Cosign) Verify(ctx context.Context, ref oci.Reference) error {
	subject, err := c.client.Resolve(ctx, ref)
	if err != nil {
		return err
	}

	tag := ref.WithTag(strings.Replace(subject.Digest.String(), ":", "-", 1) + ".sig")

	manifests, err := signatures(ctx, c.client, ref, subject, tag)
	if err != nil {
		return err
	}

	found := 0

	for _, manifest := range manifests {
		for _, layer := range manifest.Manifest.Layers[:min(len(manifest.Manifest.Layers), maxSignaturesPerFile)] {
			check := checks(layer.MediaType)
			if check == nil {
				continue
			}

			found++

			data, err := c.client.Blob(ctx, ref, layer, maxSignature)
			if err != nil {
				return err
			}

			if check(c, layer, data, subject.Digest) {
				return nil
			}
		}
	}

	if found == 0 {
		return newUntrustedError(ref, "it has no cosign signature; sign it with cosign, or remove spec.fetchConfig.verify")
	}

	return newUntrustedError(
		ref,
		"none of its %d cosign signatures is by a trusted key; check the keys in the Secret of spec.fetchConfig.verify",
		found,
	)
}

// checks finds the check for a kind of signature; nil when it is none.
func checks(mediaType string) func(c *Cosign, layer ocispec.Descriptor, data []byte, subject digest.Digest) bool {
	switch {
	case mediaType == typeSimpleSigning:
		return (*Cosign).simpleSigning
	case strings.HasPrefix(mediaType, typeBundle):
		return (*Cosign).bundle
	}

	return nil
}

// simpleSigning checks a payload with the signature in its layer's annotation.
func (c *Cosign) simpleSigning(layer ocispec.Descriptor, payload []byte, subject digest.Digest) bool {
	sig, err := base64.StdEncoding.DecodeString(layer.Annotations[annotationSignature])
	if err != nil || !slices.ContainsFunc(c.keys, func(key signature.Verifier) bool {
		return key.VerifySignature(bytes.NewReader(sig), bytes.NewReader(payload)) == nil
	}) {
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

	return json.Unmarshal(payload, &signed) == nil &&
		signed.Critical.Type == "cosign container image signature" && signed.Critical.Image.Digest == subject
}

// bundle checks a sigstore bundle with a statement that the subject was signed; attestations look
// alike and are none.
func (c *Cosign) bundle(_ ocispec.Descriptor, data []byte, subject digest.Digest) bool {
	var (
		bundle struct {
			Envelope json.RawMessage `json:"dsseEnvelope"`
		}
		envelope struct {
			Payload     []byte `json:"payload"`
			PayloadType string `json:"payloadType"`
		}
	)
	if json.Unmarshal(data, &bundle) != nil || json.Unmarshal(bundle.Envelope, &envelope) != nil ||
		envelope.PayloadType != typeStatement {
		return false
	}

	if !slices.ContainsFunc(c.keys, func(key signature.Verifier) bool {
		return dsse.WrapVerifier(key).VerifySignature(bytes.NewReader(bundle.Envelope), nil) == nil
	}) {
		return false
	}

	var statement struct {
		PredicateType string `json:"predicateType"`
		Subject       []struct {
			Digest map[string]string `json:"digest"`
		} `json:"subject"`
	}
	if json.Unmarshal(envelope.Payload, &statement) != nil || statement.PredicateType != predicateSign {
		return false
	}

	for _, s := range statement.Subject {
		if s.Digest[subject.Algorithm().String()] == subject.Encoded() {
			return true
		}
	}

	return false
}
