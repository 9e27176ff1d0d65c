package signature

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/dsse"
	"github.com/sigstore/sigstore/pkg/signature/payload"
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
	annotationPredicate = "dev.sigstore.bundle.predicateType"
)

// maxEnvelopeSignatures is the maximum number of signatures of a bundle, each of which is verified with each key.
// Cosign makes one.
const maxEnvelopeSignatures = 16

// checkPayload reports whether the signature of a payload is valid and the payload names the subject. It returns the
// versions that the payload names.
func (v *Verifier) checkPayload(encoded string, data []byte, subject digest.Digest) ([]string, bool) {
	sig, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, false
	}

	valid := slices.ContainsFunc(v.keys, func(key signature.Verifier) bool {
		return key.VerifySignature(bytes.NewReader(sig), bytes.NewReader(data)) == nil
	})
	if !valid {
		return nil, false
	}

	var signed payload.SimpleContainerImage
	if err := json.Unmarshal(data, &signed); err != nil || signed.Critical.Type != payload.CosignSignatureType {
		return nil, false
	}

	annotated, _ := signed.Optional[ocispec.AnnotationVersion].(string)
	versions := []string{tagOf(signed.Critical.Identity.DockerReference), annotated}

	return versions, signed.Critical.Image.DockerManifestDigest == subject.String()
}

// checkBundle reports whether the signature of a sigstore bundle is valid and its statement is a signature of the
// subject. Attestations are bundles with other statements. It returns the versions that the statement names.
func (v *Verifier) checkBundle(data []byte, subject digest.Digest) (versions []string, valid bool) {
	var bundle struct {
		Envelope json.RawMessage `json:"dsseEnvelope"`
	}
	if err := json.Unmarshal(data, &bundle); err != nil {
		return nil, false
	}

	var envelope struct {
		Payload     []byte            `json:"payload"`
		PayloadType string            `json:"payloadType"`
		Signatures  []json.RawMessage `json:"signatures"`
	}
	if err := json.Unmarshal(bundle.Envelope, &envelope); err != nil || envelope.PayloadType != typeStatement ||
		len(envelope.Signatures) > maxEnvelopeSignatures {
		return nil, false
	}

	valid = slices.ContainsFunc(v.keys, func(key signature.Verifier) bool {
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
