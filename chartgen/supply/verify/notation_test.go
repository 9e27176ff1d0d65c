package verify

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"testing"

	"github.com/notaryproject/notation-core-go/testhelper"
	"github.com/notaryproject/notation-go"
	notationregistry "github.com/notaryproject/notation-go/registry"
	"github.com/notaryproject/notation-go/signer"
	. "github.com/onsi/gomega"
	"oras.land/oras-go/v2/content"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
	"github.com/capstan-project/capstan/test/bed"
)

func TestNotation(t *testing.T) {
	for _, i := range bed.Implementations() {
		t.Run(string(i), func(t *testing.T) { testNotation(t, i) })
	}
}

func testNotation(t *testing.T, i bed.Implementation) {
	c, address := runRegistry(t, i)
	root := testhelper.GetRSARootCertificate()
	leaf := testhelper.GetRSALeafCertificate()
	elsewhere := testhelper.GetRSASelfSignedSigningCertificate()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Cert.Raw})
	policy := Policy{
		Provider:   v1alpha2.VerifyNotation,
		Keys:       map[string][]byte{"ca.crt": authority},
		KeysFrom:   "Secret a/keys",
		Identities: []string{"x509.subject: " + leaf.Cert.Subject.String()},
	}
	verifier, err := policy.Verifier(c)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	metadata := map[string]string{}
	sign := func(t *testing.T, ref oci.Reference, key crypto.PrivateKey, chain ...*x509.Certificate) {
		t.Helper()
		g := NewWithT(t)
		s, err := signer.NewGenericSigner(key, chain)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = notation.Sign(t.Context(), s, notationregistry.NewRepository(c.Repository(ref)), notation.SignOptions{
			ArtifactReference: ref.WithTag("").
				WithDigest(ref.Digest).
				Name(),
			SignerSignOptions: notation.SignerSignOptions{SignatureMediaType: "application/jose+json"},
			UserMetadata:      metadata,
		})
		g.Expect(err).NotTo(HaveOccurred())
	}
	t.Run("signed by a certificate that the authority issued", func(t *testing.T) {
		ref, _ := pushUnsigned(t, c, address, "notation-good")
		sign(t, ref, leaf.PrivateKey, leaf.Cert, root.Cert)
		NewWithT(t).Expect(verifier.Verify(t.Context(), ref, "v1.0.0")).To(Succeed())
	})
	t.Run("signed by another identity of the authority", func(t *testing.T) {
		g := NewWithT(t)
		ref, _ := pushUnsigned(t, c, address, "notation-identity")
		sign(t, ref, leaf.PrivateKey, leaf.Cert, root.Cert)

		other := policy
		other.Identities = []string{"x509.subject: C=DE, ST=Berlin, O=Elsewhere"}
		strict, err := other.Verifier(c)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(strict.Verify(t.Context(), ref, "v1.0.0")).
			To(MatchError(ContainSubstring("none of its 1 notation signatures is by a trusted identity")))
	})
	t.Run("signed as another version", func(t *testing.T) {
		g := NewWithT(t)
		ref, _ := pushUnsigned(t, c, address, "notation-version")
		metadata = map[string]string{"org.opencontainers.image.version": "v0.9.0"}

		sign(t, ref, leaf.PrivateKey, leaf.Cert, root.Cert)

		metadata = nil

		g.Expect(verifier.Verify(t.Context(), ref, "v0.9.0")).To(Succeed())
		g.Expect(verifier.Verify(t.Context(), ref, "v1.0.0")).
			To(MatchError(ContainSubstring("it was signed as version v0.9.0, not v1.0.0")))
	})
	t.Run("not signed", func(t *testing.T) {
		ref, _ := pushUnsigned(t, c, address, "notation-none")
		NewWithT(t).Expect(verifier.Verify(t.Context(), ref, "v1.0.0")).
			To(MatchError(ContainSubstring("has no notation signature")))
	})
	t.Run("signed by another certificate", func(t *testing.T) {
		ref, _ := pushUnsigned(t, c, address, "notation-other")
		sign(t, ref, elsewhere.PrivateKey, elsewhere.Cert)
		NewWithT(t).Expect(verifier.Verify(t.Context(), ref, "v1.0.0")).
			To(MatchError(ContainSubstring("none of its 1 notation signatures")))
	})
	t.Run("another artifact's signature", func(t *testing.T) {
		g := NewWithT(t)
		signed, subject := pushUnsigned(t, c, address, "notation-signed")
		sign(t, signed, leaf.PrivateKey, leaf.Cert, root.Cert)
		stolen, err := findSignatures(t.Context(), c, signed, subject)
		g.Expect(err).NotTo(HaveOccurred())

		layer := stolen[0].Manifest.Layers[0]
		envelope, err := c.Blob(t.Context(), signed, layer, maxSignature)
		g.Expect(err).NotTo(HaveOccurred())

		ref, desc := pushUnsigned(t, c, address, "notation-stolen")
		refer(
			t,
			c,
			ref,
			desc,
			typeNotation,
			oci.Layer{Descriptor: content.NewDescriptorFromBytes(layer.MediaType, envelope), Data: envelope},
		)
		g.Expect(verifier.Verify(t.Context(), ref, "v1.0.0")).
			To(MatchError(ContainSubstring("none of its 1 notation signatures")))
	})
}

// selfSigned returns a certificate in PEM.
func selfSigned(t *testing.T) []byte {
	t.Helper()

	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: testhelper.GetRSARootCertificate().Cert.Raw})
}
