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
	verifier, err := New(v1alpha2.VerifyNotation, c, map[string][]byte{"ca.crt": authority})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
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
		})
		g.Expect(err).NotTo(HaveOccurred())
	}
	t.Run("signed by a certificate that the authority issued", func(t *testing.T) {
		ref, _ := pushUnsigned(t, c, address, "notation-good")
		sign(t, ref, leaf.PrivateKey, leaf.Cert, root.Cert)
		NewWithT(t).Expect(verifier.Verify(t.Context(), ref)).To(Succeed())
	})
	t.Run("not signed", func(t *testing.T) {
		ref, _ := pushUnsigned(t, c, address, "notation-none")
		NewWithT(t).Expect(verifier.Verify(t.Context(), ref)).To(MatchError(ContainSubstring("has no notation signature")))
	})
	t.Run("signed by another certificate", func(t *testing.T) {
		ref, _ := pushUnsigned(t, c, address, "notation-other")
		sign(t, ref, elsewhere.PrivateKey, elsewhere.Cert)
		NewWithT(t).Expect(verifier.Verify(t.Context(), ref)).
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
		g.Expect(verifier.Verify(t.Context(), ref)).To(MatchError(ContainSubstring("none of its 1 notation signatures")))
	})
}
