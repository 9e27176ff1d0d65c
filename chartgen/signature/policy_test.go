package signature

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/dsse"

	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/cosign"
	"github.com/capstan-project/capstan/test/image"
)

// pushUnsigned pushes an artifact.
func pushUnsigned(t *testing.T, c *oci.Client, address, name string) (oci.Reference, ocispec.Descriptor) {
	t.Helper()
	g := NewWithT(t)
	ref, err := oci.Parse(
		"http://" + address + "/signed/" + strings.ReplaceAll(strings.ToLower(name), " ", "-") + ":v1.0.0",
	)
	g.Expect(err).NotTo(HaveOccurred())
	desc, err := image.PushArtifact(t.Context(), c, ref, "application/vnd.test", image.NewBlob("text/plain", []byte(name)))
	g.Expect(err).NotTo(HaveOccurred())

	return ref.WithDigest(desc.Digest), desc
}

func runRegistry(t *testing.T, i bed.Implementation) (*oci.Client, string) {
	t.Helper()
	g := NewWithT(t)
	r, err := bed.RunRegistry(t.Context(), bed.RegistryOptions{Implementation: i, Dir: t.TempDir()})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(r.Stop)

	c, err := oci.NewClient(transport.Options{})
	g.Expect(err).NotTo(HaveOccurred())

	return c, r.Address
}

func newKey(t *testing.T) cosign.Key {
	t.Helper()

	key, err := cosign.NewKey()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return key
}

const statement = `{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":%q}}],` +
	`"predicateType":%q,"predicate":{}}`

// signByTag signs as cosign 1 and 2 do.
func signByTag(t *testing.T, key cosign.Key, c *oci.Client, ref oci.Reference, payload string) {
	t.Helper()
	NewWithT(t).Expect(key.Tag(t.Context(), c, ref, ref.Digest, payload)).To(Succeed())
}

func signPayload(t *testing.T, key cosign.Key, payload string) image.Blob {
	t.Helper()

	layer, err := key.Sign(payload)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return layer
}

// refer pushes a manifest that refers to the subject.
func refer(
	t *testing.T,
	c *oci.Client,
	ref oci.Reference,
	subject ocispec.Descriptor,
	artifactType string,
	layer image.Blob,
) {
	t.Helper()

	referrer := cosign.Referrer{Subject: subject, Type: artifactType, Layer: layer}
	NewWithT(t).Expect(referrer.Push(t.Context(), c, ref)).To(Succeed())
}

// newBundle returns a bundle as cosign 3 generates it.
func newBundle(t *testing.T, key cosign.Key, payload string) image.Blob {
	t.Helper()

	envelope, err := dsse.WrapSigner(key, typeStatement).SignMessage(strings.NewReader(payload))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return image.NewBlob(
		"application/vnd.dev.sigstore.bundle.v0.3+json",
		fmt.Appendf(
			nil,
			`{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{"publicKey":{"hint":"x"}},`+
				`"dsseEnvelope":%s}`,
			envelope,
		),
	)
}

func TestCosign(t *testing.T) {
	for _, i := range bed.Implementations() {
		t.Run(string(i), func(t *testing.T) { testCosign(t, i) })
	}
}

func testCosign(t *testing.T, i bed.Implementation) {
	c, address := runRegistry(t, i)
	trusted := newKey(t)
	other := newKey(t)
	data := map[string][]byte{"a.pub": newKey(t).Public, "cosign.pub": trusted.Public, "README": []byte("not a key")}
	verifier, err := Policy{Keys: data, KeysFrom: "Secret a/keys"}.Verifier(c)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	unrelated, _ := pushUnsigned(t, c, address, "unrelated")
	for name, test := range map[string]struct {
		sign    func(t *testing.T, ref oci.Reference, subject ocispec.Descriptor)
		message string
	}{
		"signed under a tag": {
			sign: func(t *testing.T, ref oci.Reference, _ ocispec.Descriptor) {
				signByTag(t, trusted, c, ref, cosign.Payload(ref.Digest))
			},
		},
		"signed by a referrer": {
			sign: func(t *testing.T, ref oci.Reference, subject ocispec.Descriptor) {
				refer(t, c, ref, subject, cosign.TypeSignature, signPayload(t, trusted, cosign.Payload(ref.Digest)))
			},
		},
		"signed by a bundle": {
			sign: func(t *testing.T, ref oci.Reference, subject ocispec.Descriptor) {
				refer(
					t,
					c,
					ref,
					subject,
					typeBundle+".v0.3+json",
					newBundle(t, trusted, fmt.Sprintf(statement, ref.Digest.Encoded(), predicateSign)),
				)
			},
		},
		"signed with two keys, one of them trusted": {
			sign: func(t *testing.T, ref oci.Reference, subject ocispec.Descriptor) {
				signByTag(t, other, c, ref, cosign.Payload(ref.Digest))
				refer(
					t,
					c,
					ref,
					subject,
					typeBundle+".v0.3+json",
					newBundle(t, trusted, fmt.Sprintf(statement, ref.Digest.Encoded(), predicateSign)),
				)
			},
		},
		"not signed": {sign: func(*testing.T, oci.Reference, ocispec.Descriptor) {}, message: "has no cosign signature"},
		"signed by another key": {
			sign: func(t *testing.T, ref oci.Reference, _ ocispec.Descriptor) {
				signByTag(t, other, c, ref, cosign.Payload(ref.Digest))
			},
			message: "none of its 1 cosign signatures is by a trusted key; check the keys in Secret a/keys",
		},
		"a bundle by another key": {
			sign: func(t *testing.T, ref oci.Reference, subject ocispec.Descriptor) {
				refer(
					t,
					c,
					ref,
					subject,
					typeBundle+".v0.3+json",
					newBundle(t, other, fmt.Sprintf(statement, ref.Digest.Encoded(), predicateSign)),
				)
			},
			message: "none of its 1",
		},
		"another artifact's signature": {
			sign: func(t *testing.T, ref oci.Reference, _ ocispec.Descriptor) {
				signByTag(t, trusted, c, ref, cosign.Payload(unrelated.Digest))
			},
			message: "none of its 1",
		},
		"another artifact's bundle": {
			sign: func(t *testing.T, ref oci.Reference, subject ocispec.Descriptor) {
				refer(
					t,
					c,
					ref,
					subject,
					typeBundle+".v0.3+json",
					newBundle(t, trusted, fmt.Sprintf(statement, unrelated.Digest.Encoded(), predicateSign)),
				)
			},
			message: "none of its 1",
		},
		"an attestation": {
			sign: func(t *testing.T, ref oci.Reference, subject ocispec.Descriptor) {
				refer(
					t,
					c,
					ref,
					subject,
					typeBundle+".v0.3+json",
					newBundle(t, trusted, fmt.Sprintf(statement, ref.Digest.Encoded(), "https://slsa.dev/provenance/v1")),
				)
			},
			message: "none of its 1",
		},
		"a payload of another kind": {
			sign: func(t *testing.T, ref oci.Reference, _ ocispec.Descriptor) {
				signByTag(
					t,
					trusted,
					c,
					ref,
					strings.Replace(cosign.Payload(ref.Digest), "cosign container image signature", "something else", 1),
				)
			},
			message: "none of its 1",
		},
		"garbage": {
			sign: func(t *testing.T, ref oci.Reference, subject ocispec.Descriptor) {
				refer(
					t,
					c,
					ref,
					subject,
					typeBundle+".v0.3+json",
					image.NewBlob(typeBundle+".v0.3+json", []byte(`{"dsseEnvelope":{"payload":"!"}}`)),
				)
			},
			message: "none of its 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			ref, subject := pushUnsigned(t, c, address, strings.NewReplacer("'", "", ",", "").Replace(name))
			test.sign(t, ref, subject)

			err := verifier.Verify(t.Context(), ref, "v1.0.0")
			if test.message == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}

			g.Expect(transport.Is(err, transport.Unverified)).To(BeTrue())
			g.Expect(err).To(MatchError(And(ContainSubstring(test.message), ContainSubstring(ref.String()))))
		})
	}
}

// TestKeys: what cosign signs with a key verifies, whatever kind of key that is.
func TestKeys(t *testing.T) {
	c, address := runRegistry(t, bed.Distribution)

	curve := func(c elliptic.Curve) func() (crypto.Signer, error) {
		return func() (crypto.Signer, error) { return ecdsa.GenerateKey(c, rand.Reader) }
	}
	bits := func(n int) func() (crypto.Signer, error) {
		return func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, n) }
	}

	for name, generate := range map[string]func() (crypto.Signer, error){
		"P-256":    curve(elliptic.P256()),
		"P-384":    curve(elliptic.P384()),
		"P-521":    curve(elliptic.P521()),
		"RSA 2048": bits(2048),
		"RSA 3072": bits(3072),
		"RSA 4096": bits(4096),
		"Ed25519": func() (crypto.Signer, error) {
			_, private, err := ed25519.GenerateKey(rand.Reader)
			return private, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			private, err := generate()
			g.Expect(err).NotTo(HaveOccurred())

			current, err := cosign.KeyOf(private)
			g.Expect(err).NotTo(HaveOccurred())

			former := current // of cosign 1 and 2, and with --signature-digest-algorithm=sha256
			former.SignerVerifier, err = signature.LoadSignerVerifier(private, crypto.SHA256)
			g.Expect(err).NotTo(HaveOccurred())

			trusting, err := Policy{Keys: map[string][]byte{"cosign.pub": current.Public}}.Verifier(c)
			g.Expect(err).NotTo(HaveOccurred())

			other, err := Policy{Keys: map[string][]byte{"cosign.pub": newKey(t).Public}}.Verifier(c)
			g.Expect(err).NotTo(HaveOccurred())

			for way, key := range map[string]cosign.Key{"former": former, "current": current} {
				ref, _ := pushUnsigned(t, c, address, name+" payload "+way)
				signByTag(t, key, c, ref, cosign.Payload(ref.Digest))
				g.Expect(trusting.Verify(t.Context(), ref, "v1.0.0")).To(Succeed(), "a payload, signed in the %s way", way)
				g.Expect(transport.Is(other.Verify(t.Context(), ref, "v1.0.0"), transport.Unverified)).To(BeTrue())

				ref, subject := pushUnsigned(t, c, address, name+" bundle "+way)
				bundle := newBundle(t, key, fmt.Sprintf(statement, ref.Digest.Encoded(), predicateSign))
				refer(t, c, ref, subject, typeBundle+".v0.3+json", bundle)
				g.Expect(trusting.Verify(t.Context(), ref, "v1.0.0")).To(Succeed(), "a bundle, signed in the %s way", way)
				g.Expect(transport.Is(other.Verify(t.Context(), ref, "v1.0.0"), transport.Unverified)).To(BeTrue())
			}
		})
	}
}

func TestNewRejectsKeys(t *testing.T) {
	for name, test := range map[string]struct {
		data    map[string][]byte
		message string
	}{
		"no key": {
			data:    map[string][]byte{"a.crt": []byte("x")},
			message: "ends in .pub",
		},
		"not a key": {
			data:    map[string][]byte{"a.pub": []byte("x")},
			message: "a.pub is not a public key in PEM",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Policy{Keys: test.data}.Verifier(nil)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.message)))
		})
	}
}
