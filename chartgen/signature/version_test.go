package signature

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"

	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/test/bed"
)

// pushVersion pushes an artifact whose manifest names a version, unless that is empty.
func pushVersion(t *testing.T, c *oci.Client, address, name, version string) (oci.Reference, ocispec.Descriptor) {
	t.Helper()
	g := NewWithT(t)
	ref, err := oci.Parse("http://" + address + "/versions/" + name + ":v1.0.0")
	g.Expect(err).NotTo(HaveOccurred())

	annotations := map[string]string{}
	if version != "" {
		annotations[ocispec.AnnotationVersion] = version
	}

	repository := c.Repository(ref)
	layer, err := oras.PushBytes(t.Context(), repository, "text/plain", []byte(name))
	g.Expect(err).NotTo(HaveOccurred())
	desc, err := oras.PackManifest(t.Context(), repository, oras.PackManifestVersion1_1, "application/vnd.test",
		oras.PackManifestOptions{Layers: []ocispec.Descriptor{layer}, ManifestAnnotations: annotations})
	g.Expect(err).NotTo(HaveOccurred())

	return ref.WithDigest(desc.Digest), desc
}

// An old release keeps its signature when its tag is moved to that of a new one.
func TestSignedVersion(t *testing.T) {
	c, address := runRegistry(t, bed.Distribution)
	key := newKey(t)
	policy := Policy{
		Keys: map[string][]byte{"cosign.pub": key.Public}, KeysFrom: "Secret a/keys",
	}
	verifier, err := policy.Verifier(c)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	payload := func(reference, optional string) func(*testing.T, oci.Reference, ocispec.Descriptor) {
		return func(t *testing.T, ref oci.Reference, _ ocispec.Descriptor) {
			t.Helper()
			signByTag(t, key, c, ref, fmt.Sprintf(
				`{"critical":{"identity":{"docker-reference":%q},"image":{"docker-manifest-digest":%q},`+
					`"type":"cosign container image signature"},"optional":%s}`, reference, ref.Digest, optional))
		}
	}
	bundled := func(subject string) func(*testing.T, oci.Reference, ocispec.Descriptor) {
		return func(t *testing.T, ref oci.Reference, desc ocispec.Descriptor) {
			t.Helper()
			refer(t, c, ref, desc, typeBundle+".v0.3+json", newBundle(t, key, fmt.Sprintf(
				`{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":%q,"digest":{"sha256":%q}}],`+
					`"predicateType":%q,"predicate":{}}`, subject, ref.Digest.Encoded(), predicateSign)))
		}
	}

	// annotated is what `cosign sign -a org.opencontainers.image.version=0.9.0` of cosign 3.1.3 writes.
	annotated := func(t *testing.T, ref oci.Reference, desc ocispec.Descriptor) {
		t.Helper()
		refer(t, c, ref, desc, typeBundle+".v0.3+json", newBundle(t, key, fmt.Sprintf(
			`{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":%q},`+
				`"annotations":{"org.opencontainers.image.version":"0.9.0"}}],"predicateType":%q,"predicate":{}}`,
			ref.Digest.Encoded(), predicateSign)))
	}

	for name, test := range map[string]struct {
		manifest string
		sign     func(*testing.T, oci.Reference, ocispec.Descriptor)
		// as is the version that the signed content names; empty for none.
		as string
	}{
		"nothing":             {sign: payload("registry.example.com:5000/x", "null")},
		"tag-of-no-version":   {sign: payload("registry.example.com/x:stable", "null")},
		"payload-reference":   {sign: payload("registry.example.com:5000/x:v0.9.0@sha256:00", "null"), as: "v0.9.0"},
		"payload-without-v":   {sign: payload("registry.example.com/x:0.9.0", "null"), as: "v0.9.0"},
		"payload-annotation":  {sign: payload("x", `{"org.opencontainers.image.version":"v0.9.0"}`), as: "v0.9.0"},
		"bundle-without-name": {sign: bundled("")},
		"bundle-subject":      {sign: bundled("registry.example.com/x:v0.9.0"), as: "v0.9.0"},
		"bundle-annotation":   {sign: annotated, as: "v0.9.0"},
		"manifest-annotation": {sign: payload("x", "null"), manifest: "0.9.0", as: "v0.9.0"},
		"manifest-no-version": {sign: payload("x", "null"), manifest: "24.04"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			ref, desc := pushVersion(t, c, address, name, test.manifest)
			test.sign(t, ref, desc)

			err := verifier.Verify(t.Context(), ref, "v1.0.0")
			if test.as == "" {
				g.Expect(err).NotTo(HaveOccurred())

				return
			}

			g.Expect(transport.Is(err, transport.Unverified)).To(BeTrue())
			g.Expect(err).To(MatchError(ContainSubstring("not v1.0.0; find out who moved the tag")))
			g.Expect(verifier.Verify(t.Context(), ref, test.as)).To(Succeed())
		})
	}

	t.Run("one of two signatures is for the version", func(t *testing.T) {
		g := NewWithT(t)
		ref, desc := pushVersion(t, c, address, "both", "")
		payload("x:v0.9.0", "null")(t, ref, desc)
		bundled("x:v1.0.0")(t, ref, desc)
		g.Expect(verifier.Verify(t.Context(), ref, "v1.0.0")).To(Succeed())
	})
}

func TestPolicy(t *testing.T) {
	g := NewWithT(t)
	base := Policy{Keys: map[string][]byte{"a.pub": []byte("a")}, KeysFrom: "Secret keys"}
	g.Expect(base.String()).To(MatchRegexp(`^signed with Cosign, by keys in Secret keys \(sha256:[0-9a-f]{64}\)$`))

	for name, other := range map[string]Policy{
		"another key":  {Keys: map[string][]byte{"a.pub": []byte("b")}, KeysFrom: "Secret keys"},
		"one more key": {Keys: map[string][]byte{"a.pub": []byte("a"), "b.pub": []byte("b")}, KeysFrom: "Secret keys"},
		"no key":       {KeysFrom: "Secret keys"},
	} {
		g.Expect(other.String()).NotTo(Equal(base.String()), name)
	}

	ignored := base
	ignored.Keys = map[string][]byte{"a.pub": []byte("a"), "README": []byte("not a key")}
	g.Expect(ignored.String()).To(Equal(base.String()))
}
