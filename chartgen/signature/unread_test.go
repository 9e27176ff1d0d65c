package signature

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"

	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/cosign"
	"github.com/capstan-project/capstan/test/image"
)

// TestUnreadableSignatures: what cannot be read hides no signature that can, and is named if there is none. It never
// makes an artifact one that is not there.
func TestUnreadableSignatures(t *testing.T) {
	dir := t.TempDir()
	server, err := bed.RunRegistry(t.Context(), bed.RegistryOptions{Dir: dir})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(server.Stop)

	c, err := oci.NewClient(transport.Options{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	key := newKey(t)
	verifier, err := Policy{Keys: map[string][]byte{"cosign.pub": key.Public}, KeysFrom: "Secret a/keys"}.Verifier(c)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	// lose removes a blob from the storage of the registry.
	lose := func(g *WithT, d digest.Digest) {
		g.Expect(os.RemoveAll(filepath.Join(dir, "data/docker/registry/v2/blobs/sha256", d.Encoded()[:2], d.Encoded()))).
			To(Succeed())
	}
	// referTo pushes a bundle that refers to the subject.
	referTo := func(g *WithT, ref oci.Reference, subject ocispec.Descriptor, data []byte) (layer digest.Digest) {
		bundle := cosign.Referrer{
			Subject: subject, Type: typeBundle + ".v0.3+json", Layer: image.NewBlob(typeBundle+".v0.3+json", data),
		}
		g.Expect(bundle.Push(t.Context(), c, ref)).To(Succeed())

		return bundle.Layer.Descriptor.Digest
	}

	for name, test := range map[string]struct {
		// spoil adds referrers that are no signatures, or cannot be read.
		spoil   func(g *WithT, ref oci.Reference, subject ocispec.Descriptor)
		message string
		// isLast is set if no referrer after them is read, or accepted by the registry.
		isLast bool
	}{
		"a large attestation": {
			spoil: func(g *WithT, ref oci.Reference, subject ocispec.Descriptor) {
				referTo(g, ref, subject, bytes.Repeat([]byte(" "), maxSignature+1))
			},
			message: "it has no cosign signature, and not all can be read (pull http://" + server.Address + "/signed/" +
				"a-large-attestation",
		},
		"a lost layer": {
			spoil: func(g *WithT, ref oci.Reference, subject ocispec.Descriptor) {
				lose(g, referTo(g, ref, subject, []byte(`{"lost": "layer"}`)))
			},
			message: "it has no cosign signature, and not all can be read (pull http://",
		},
		"a lost manifest": {
			spoil: func(g *WithT, ref oci.Reference, subject ocispec.Descriptor) {
				manifest, err := oras.PackManifest(t.Context(), c.Repository(ref), oras.PackManifestVersion1_1,
					typeBundle+".v0.3+json", oras.PackManifestOptions{Subject: &subject})
				g.Expect(err).NotTo(HaveOccurred())
				lose(g, manifest.Digest)
			},
			isLast:  true,
			message: "it has no cosign signature, and not all can be read (pull http://",
		},
		"too many referrers": {
			spoil: func(g *WithT, ref oci.Reference, subject ocispec.Descriptor) {
				for n := range maxSignatures + 1 {
					_, err := oras.PackManifest(t.Context(), c.Repository(ref), oras.PackManifestVersion1_1, "application/vnd.test",
						oras.PackManifestOptions{
							Subject: &subject, ManifestAnnotations: map[string]string{"number": fmt.Sprint(n)},
						})
					g.Expect(err).NotTo(HaveOccurred())
				}
			},
			message: "it has no cosign signature, and not all can be read (list the signatures of http://",
			isLast:  true,
		},
		"an attestation": {
			spoil: func(g *WithT, ref oci.Reference, subject ocispec.Descriptor) {
				layer := newBundle(t, key, fmt.Sprintf(statement, ref.Digest.Encoded(), "https://slsa.dev/provenance/v1"))
				g.Expect(c.Repository(ref).Push(t.Context(), layer.Descriptor, bytes.NewReader(layer.Data))).To(Succeed())
				_, err := oras.PackManifest(t.Context(), c.Repository(ref), oras.PackManifestVersion1_1,
					typeBundle+".v0.3+json", oras.PackManifestOptions{
						Subject: &subject, Layers: []ocispec.Descriptor{layer.Descriptor},
						ManifestAnnotations: map[string]string{annotationPredicate: "https://slsa.dev/provenance/v1"},
					})
				g.Expect(err).NotTo(HaveOccurred())
			},
			message: "it has no cosign signature; sign it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			ref, subject := pushUnsigned(t, c, server.Address, name)
			test.spoil(g, ref, subject)

			err := verifier.Verify(t.Context(), ref, "v1.0.0")
			g.Expect(transport.Is(err, transport.Unverified)).To(BeTrue(), "%v", err)
			g.Expect(err).To(MatchError(ContainSubstring(test.message)))

			if !test.isLast {
				bundle := newBundle(t, key, fmt.Sprintf(statement, ref.Digest.Encoded(), predicateSign))
				refer(t, c, ref, subject, typeBundle+".v0.3+json", bundle)
				g.Expect(verifier.Verify(t.Context(), ref, "v1.0.0")).To(Succeed(), "a referrer, behind")
			}

			signByTag(t, key, c, ref, cosign.Payload(ref.Digest))
			g.Expect(verifier.Verify(t.Context(), ref, "v1.0.0")).To(Succeed(), "a tag")
		})
	}
}
