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

// signedByKey trusts artifacts that were signed by the program cosign with one of some keys.
type signedByKey struct {
	client *oci.Client
	policy Policy
	keys   []signature.Verifier
}

// newCosign returns a verifier for PEM public keys.
func newCosign(client *oci.Client, policy Policy) (*signedByKey, error) {
	keys := policy.trusted()
	if len(keys) == 0 {
		return nil, errors.New("no key of the Secret with the trusted public keys ends in .pub; put cosign.pub there")
	}

	c := &signedByKey{client: client, policy: policy}

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

// Verify returns a *source.UntrustedError unless the manifest has a signature by one of the keys that
// does not name another version.
func (c *signedByKey) Verify(ctx context.Context, ref oci.Reference, version string) error {
	subject, err := c.client.Resolve(ctx, ref)
	if err != nil {
		return err
	}

	tag := ref.WithTag(oci.SignatureTag(subject.Digest))

	manifests, err := findSignatures(ctx, c.client, ref, subject, tag)
	if err != nil {
		return err
	}

	found := 0
	other := ""

	for _, layer := range signatureLayers(manifests) {
		found++

		data, err := c.client.Blob(ctx, ref, layer, maxSignature)
		if err != nil {
			return err
		}

		versions, valid := c.check(layer, data, subject.Digest)
		if !valid {
			continue
		}

		if other = otherVersion(version, versions...); other == "" {
			return checkManifest(ctx, c.client, ref, version)
		}
	}

	switch {
	case other != "":
		return newVersionError(ref, other, version)
	case found == 0:
		return newUntrustedError(ref, "it has no cosign signature; sign it with a key in %s", c.policy.KeysFrom)
	}

	return newUntrustedError(
		ref,
		"none of its %d cosign signatures is by a trusted key; check the keys in %s",
		found,
		c.policy.KeysFrom,
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

// check reports whether a layer is a signature of the subject by one of the keys, and returns the
// versions that were signed with it.
func (c *signedByKey) check(layer ocispec.Descriptor, data []byte, subject digest.Digest) ([]string, bool) {
	if layer.MediaType == typeSimpleSigning {
		return c.checkPayload(layer.Annotations[annotationSignature], data, subject)
	}

	return c.checkBundle(data, subject)
}

// checkPayload reports whether the signature of a payload is valid and the payload names the subject.
func (c *signedByKey) checkPayload(encoded string, payload []byte, subject digest.Digest) ([]string, bool) {
	sig, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, false
	}

	valid := slices.ContainsFunc(c.keys, func(key signature.Verifier) bool {
		return key.VerifySignature(bytes.NewReader(sig), bytes.NewReader(payload)) == nil
	})
	if !valid {
		return nil, false
	}

	var signed struct {
		Critical struct {
			Type     string `json:"type"`
			Identity struct {
				Reference string `json:"docker-reference"`
			} `json:"identity"`
			Image struct {
				Digest digest.Digest `json:"docker-manifest-digest"`
			} `json:"image"`
		} `json:"critical"`
		Optional map[string]any `json:"optional"`
	}
	if err := json.Unmarshal(payload, &signed); err != nil {
		return nil, false
	}

	annotated, _ := signed.Optional[ocispec.AnnotationVersion].(string)
	versions := []string{tagOf(signed.Critical.Identity.Reference), annotated}

	return versions, signed.Critical.Type == "cosign container image signature" && signed.Critical.Image.Digest == subject
}

// checkBundle reports whether the signature of a sigstore bundle is valid and its statement is a
// signature of the subject. Attestations are bundles with other statements.
func (c *signedByKey) checkBundle(data []byte, subject digest.Digest) (versions []string, valid bool) {
	var bundle struct {
		Envelope json.RawMessage `json:"dsseEnvelope"`
	}
	if err := json.Unmarshal(data, &bundle); err != nil {
		return nil, false
	}

	var envelope struct {
		Payload     []byte `json:"payload"`
		PayloadType string `json:"payloadType"`
	}
	if err := json.Unmarshal(bundle.Envelope, &envelope); err != nil || envelope.PayloadType != typeStatement {
		return nil, false
	}

	valid = slices.ContainsFunc(c.keys, func(key signature.Verifier) bool {
		return dsse.WrapVerifier(key).VerifySignature(bytes.NewReader(bundle.Envelope), nil) == nil
	})
	if !valid {
		return nil, false
	}

	var statement struct {
		PredicateType string `json:"predicateType"`
		Subject       []struct {
			Name        string            `json:"name"`
			Digest      map[string]string `json:"digest"`
			Annotations map[string]any    `json:"annotations"`
		} `json:"subject"`
	}
	if err := json.Unmarshal(envelope.Payload, &statement); err != nil || statement.PredicateType != predicateSign {
		return nil, false
	}

	for _, s := range statement.Subject {
		if s.Digest[subject.Algorithm().String()] == subject.Encoded() {
			annotated, _ := s.Annotations[ocispec.AnnotationVersion].(string)

			return []string{tagOf(s.Name), annotated}, true
		}
	}

	return nil, false
}
