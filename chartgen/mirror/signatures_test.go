package mirror

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/signature"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/cosign"
	"github.com/capstan-project/capstan/test/image"
)

func newKey(t *testing.T) cosign.Key {
	t.Helper()

	key, err := cosign.NewKey()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return key
}

// signByTag stores a signature under cosign's tag.
func signByTag(t *testing.T, key cosign.Key, c *oci.Client, ref oci.Reference, subject ocispec.Descriptor) {
	t.Helper()
	NewWithT(t).Expect(key.Tag(t.Context(), c, ref, subject.Digest, cosign.Payload(subject.Digest))).To(Succeed())
}

// signByReferrer stores a signature in a manifest that refers to the subject.
func signByReferrer(t *testing.T, key cosign.Key, c *oci.Client, ref oci.Reference, subject ocispec.Descriptor) {
	t.Helper()
	signature := cosign.Referrer{Subject: subject, Type: cosign.TypeSignature, Layer: sign(t, key, subject)}
	NewWithT(t).Expect(signature.Push(t.Context(), c, ref)).To(Succeed())
}

func sign(t *testing.T, key cosign.Key, subject ocispec.Descriptor) image.Blob {
	t.Helper()

	layer, err := key.Sign(cosign.Payload(subject.Digest))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return layer
}

func TestCopySignatures(t *testing.T) {
	g := NewWithT(t)
	c := newClient(t, transport.Options{})
	key := newKey(t)
	other := newKey(t)
	base := repository(t, "http://"+runRegistry(t, bed.RegistryOptions{}).Address)
	images := publishImages(t, c, base.Registry)
	images = append(images, base.Join("cluster-api/unsigned").WithTag("v1.0.0"))
	_, err := image.Push(t.Context(), c, images[2], platforms, image.Random(1<<10, 3))
	g.Expect(err).NotTo(HaveOccurred())
	chart, err := image.PushChart(t.Context(), c, base.Join("charts/infrastructure-x").WithTag("1.0.0_a"), testChart(t))
	g.Expect(err).NotTo(HaveOccurred())

	resolve := func(ref oci.Reference) ocispec.Descriptor {
		t.Helper()
		desc, err := c.Resolve(t.Context(), ref)
		g.Expect(err).NotTo(HaveOccurred())

		return desc
	}
	signByTag(t, key, c, images[0], resolve(images[0]))
	signByReferrer(t, key, c, images[1], resolve(images[1]))
	signByReferrer(t, other, c, images[1], resolve(images[1]))
	signByReferrer(t, key, c, chart.Reference, resolve(chart.Reference))

	all := func() []*Item {
		t.Helper()
		found, err := PublishedChart(t.Context(), c, chart.Reference.WithTag(chart.Reference.Tag))
		g.Expect(err).NotTo(HaveOccurred())

		return append(found, plainImages(t, c, images)...)
	}
	g.Expect(all()).To(HaveLen(5), "four items, and a signature under a tag")

	file := filepath.Join(t.TempDir(), "mirror.tar")
	archive, err := CreateArchive(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Copy(t.Context(), all(), archive, Options{Parallel: 3})).To(Succeed())
	g.Expect(archive.Close()).To(Succeed())

	archived, err := OpenArchive(t.Context(), file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(archived).To(HaveLen(5))

	target := &Registry{Client: c, Base: repository(t, "http://"+runRegistry(t, bed.RegistryOptions{}).Address)}
	g.Expect(Copy(t.Context(), archived, target, Options{Parallel: 3})).To(Succeed())

	trusted := func(ref oci.Reference, by cosign.Key) error {
		t.Helper()

		verifier, err := signature.Policy{Keys: map[string][]byte{"cosign.pub": by.Public}}.Verifier(c)
		g.Expect(err).NotTo(HaveOccurred())

		mirrored := target.Base.Join(ref.Repository).WithTag(ref.Tag)

		return verifier.Verify(t.Context(), mirrored.WithDigest(resolve(mirrored).Digest), "")
	}
	for _, ref := range append(images[:2:2], chart.Reference) {
		g.Expect(trusted(ref, key)).To(Succeed(), ref.String())
	}

	g.Expect(trusted(images[1], other)).To(Succeed())
	g.Expect(trusted(images[2], key)).To(MatchError(ContainSubstring("has no cosign signature")))

	// a second signature moves cosign's tag, which is not an error
	signed := resolve(images[0])
	moved, err := image.PushArtifact(
		t.Context(),
		c,
		images[0].WithTag("second"),
		"",
		sign(t, key, signed),
		sign(t, other, signed),
	)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Repository(images[0]).Tag(t.Context(), moved, oci.SignatureTag(signed.Digest))).
		To(Succeed())

	var again tally

	g.Expect(Copy(t.Context(), all(), target, again.options(3))).To(Succeed())
	g.Expect(again.copied.Load()).To(BeEquivalentTo(1))
	g.Expect(trusted(images[0], other)).To(Succeed())

	some := plainImages(t, c, images[:1], "linux/arm64")
	g.Expect(some).To(HaveLen(1), "signatures are for all platforms")
}
