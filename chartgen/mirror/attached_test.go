package mirror

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"oras.land/oras-go/v2"

	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/verify"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/image"
)

// signer signs as cosign does.
type signer struct {
	signature.SignerVerifier
	public []byte
}

func newSigner(t *testing.T) signer {
	t.Helper()
	g := NewWithT(t)
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	sv, err := signature.LoadECDSASignerVerifier(private, crypto.SHA256)
	g.Expect(err).NotTo(HaveOccurred())
	public, err := cryptoutils.MarshalPublicKeyToPEM(private.Public())
	g.Expect(err).NotTo(HaveOccurred())
	return signer{sv, public}
}

// sign makes the layer with a signature of a manifest.
func (s signer) sign(t *testing.T, subject ocispec.Descriptor) oci.Layer {
	t.Helper()
	payload := fmt.Sprintf(`{"critical":{"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"}}`, subject.Digest)
	sig, err := s.SignMessage(strings.NewReader(payload))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	layer := oci.NewLayer("application/vnd.dev.cosign.simplesigning.v1+json", []byte(payload))
	layer.Descriptor.Annotations = map[string]string{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(sig)}
	return layer
}

// byTag keeps a signature under cosign's tag.
func (s signer) byTag(t *testing.T, c *oci.Client, ref oci.Reference, subject ocispec.Descriptor) {
	t.Helper()
	_, err := image.PushArtifact(t.Context(), c, ref.WithTag(strings.Replace(subject.Digest.String(), ":", "-", 1)+".sig"), "", s.sign(t, subject))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
}

// byReferring keeps a signature in a manifest that refers to the subject.
func (s signer) byReferring(t *testing.T, c *oci.Client, ref oci.Reference, subject ocispec.Descriptor) {
	t.Helper()
	g := NewWithT(t)
	layer, repository := s.sign(t, subject), c.Repository(ref)
	g.Expect(repository.Push(t.Context(), layer.Descriptor, bytes.NewReader(layer.Data))).To(Succeed())
	_, err := oras.PackManifest(t.Context(), repository, oras.PackManifestVersion1_1, "application/vnd.dev.cosign.artifact.sig.v1+json",
		oras.PackManifestOptions{Subject: &subject, Layers: []ocispec.Descriptor{layer.Descriptor}})
	g.Expect(err).NotTo(HaveOccurred())
}

func TestSignaturesAreMirrored(t *testing.T) {
	g := NewWithT(t)
	c, key, other := newClient(t, oci.Options{}), newSigner(t), newSigner(t)
	base := repository(t, "http://"+runRegistry(t, bed.RegistryOptions{}).Address)
	images := published(t, c, base.Registry)
	images = append(images, base.Join("cluster-api/unsigned").WithTag("v1.0.0"))
	_, err := image.Push(t.Context(), c, images[2], platforms, image.Random(1<<10, 3))
	g.Expect(err).NotTo(HaveOccurred())
	chart, err := c.PushChart(t.Context(), base.Join("charts/infrastructure-x").WithTag("1.0.0_a"), testChart(t))
	g.Expect(err).NotTo(HaveOccurred())
	resolve := func(ref oci.Reference) ocispec.Descriptor {
		t.Helper()
		desc, err := c.Resolve(t.Context(), ref)
		g.Expect(err).NotTo(HaveOccurred())
		return desc
	}
	key.byTag(t, c, images[0], resolve(images[0]))
	key.byReferring(t, c, images[1], resolve(images[1]))
	other.byReferring(t, c, images[1], resolve(images[1]))
	key.byReferring(t, c, chart.Reference, resolve(chart.Reference))
	all := func() []*Item {
		t.Helper()
		found, err := Artifact(t.Context(), c, chart.Reference.WithTag(chart.Reference.Tag))
		g.Expect(err).NotTo(HaveOccurred())
		return append(found, plainImages(t, c, images)...)
	}
	g.Expect(all()).To(HaveLen(8), "four and their four signatures")

	file := filepath.Join(t.TempDir(), "mirror.tar")
	archive, err := CreateArchive(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Copy(t.Context(), all(), archive, Options{Parallel: 3, Observer: &tally{}})).To(Succeed())
	g.Expect(archive.Close(t.Context())).To(Succeed())
	carried, err := OpenArchive(t.Context(), file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(carried).To(HaveLen(8))
	attached := 0
	for _, item := range carried {
		if item.Attached() {
			attached++
			g.Expect(item.Size).To(BeNumerically("<", 4<<10), "without what is signed")
		}
	}
	g.Expect(attached).To(Equal(4))

	target := &Registry{Client: c, Base: repository(t, "http://"+runRegistry(t, bed.RegistryOptions{}).Address)}
	g.Expect(Copy(t.Context(), carried, target, Options{Parallel: 3, Observer: &tally{}})).To(Succeed())
	trusted := func(ref oci.Reference, by signer) error {
		t.Helper()
		verifier, err := verify.NewCosign(c, map[string][]byte{"cosign.pub": by.public})
		g.Expect(err).NotTo(HaveOccurred())
		mirrored := target.Base.Join(ref.Repository).WithTag(ref.Tag)
		return verifier.Verify(t.Context(), mirrored.WithDigest(resolve(mirrored).Digest))
	}
	for _, ref := range append(images[:2:2], chart.Reference) {
		g.Expect(trusted(ref, key)).To(Succeed(), ref.String())
	}
	g.Expect(trusted(images[1], other)).To(Succeed())
	g.Expect(trusted(images[2], key)).To(MatchError(ContainSubstring("has no cosign signature")))

	// Another signature moves cosign's tag, which is no reason to stop.
	signed := resolve(images[0])
	moved, err := image.PushArtifact(t.Context(), c, images[0].WithTag("second"), "", key.sign(t, signed), other.sign(t, signed))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Repository(images[0]).Tag(t.Context(), moved, strings.Replace(signed.Digest.String(), ":", "-", 1)+".sig")).To(Succeed())
	again := &tally{}
	g.Expect(Copy(t.Context(), all(), target, Options{Parallel: 3, Observer: again})).To(Succeed())
	g.Expect(again.copied).To(Equal(1))
	g.Expect(trusted(images[0], other)).To(Succeed())

	some := plainImages(t, c, images[:1], "linux/arm64")
	g.Expect(some).To(HaveLen(1), "no signature is of some platforms alone")
}
