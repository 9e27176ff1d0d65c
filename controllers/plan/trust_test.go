package plan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/test/bed"
	"github.com/capstan-project/capstan/test/cosign"
	"github.com/capstan-project/capstan/test/image"
)

// pushSample pushes the release of the sample provider docker v1.0.0, with more text at its end.
func pushSample(t *testing.T, c *oci.Client, ref oci.Reference, more string) oci.Reference {
	t.Helper()
	g := NewWithT(t)

	var layers []image.Blob

	for _, name := range []string{"metadata.yaml", "infrastructure-components.yaml"} {
		data, err := os.ReadFile(filepath.Join(samples, "infrastructure-docker", "v1.0.0", name))
		g.Expect(err).NotTo(HaveOccurred())

		layer := image.NewBlob("application/vnd.test.file", append(data, more...))
		layer.Descriptor.Annotations = map[string]string{ocispec.AnnotationTitle: name}
		layers = append(layers, layer)
	}

	desc, err := image.PushArtifact(t.Context(), c, ref, "application/vnd.acme.config", layers...)
	g.Expect(err).NotTo(HaveOccurred())

	return ref.WithDigest(desc.Digest)
}

func TestTrustIsWithdrawn(t *testing.T) {
	registry, err := bed.RunRegistry(t.Context(), bed.RegistryOptions{Dir: t.TempDir()})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(registry.Stop)

	client, err := oci.NewClient(transport.Options{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	newKey := func() cosign.Key {
		key, err := cosign.NewKey()
		NewWithT(t).Expect(err).NotTo(HaveOccurred())

		return key
	}
	key := newKey()

	for _, test := range []struct {
		name string
		// change changes what is trusted, or what is there.
		change func(g Gomega, keys *corev1.Secret, p *v1alpha2.InfrastructureProvider, ref oci.Reference)
		// refresh reads the source although nothing of the resource changed.
		refresh bool
		message string
	}{
		{
			name: "by another key in the Secret",
			change: func(_ Gomega, keys *corev1.Secret, _ *v1alpha2.InfrastructureProvider, _ oci.Reference) {
				keys.Data = map[string][]byte{"cosign.pub": newKey().Public}
			},
			message: "none of its 1 cosign signatures is by a trusted key; check the keys in Secret keys",
		},
		{
			name: "by another Secret",
			change: func(_ Gomega, _ *corev1.Secret, p *v1alpha2.InfrastructureProvider, _ oci.Reference) {
				p.Spec.FetchConfig.Verify.SecretRef.Name = "others"
			},
			message: "Secret capd-system/others with the keys for verification does not exist",
		},
		{
			name: "by content that is not signed",
			change: func(g Gomega, _ *corev1.Secret, _ *v1alpha2.InfrastructureProvider, ref oci.Reference) {
				unsigned := pushSample(t, client, ref.WithTag("unsigned"), "\n# not signed\n")
				desc, err := client.Resolve(t.Context(), unsigned)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(client.Repository(ref).Tag(t.Context(), desc, "v1.0.0")).To(Succeed())
			},
			refresh: true,
			message: "it has no cosign signature; sign it with a key in Secret keys",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			repository, err := oci.Parse("http://" + registry.Address + "/" + strings.ToLower(filepath.Base(t.Name())))
			g.Expect(err).NotTo(HaveOccurred())

			signed := pushSample(t, client, repository.WithTag("v1.0.0"), "")
			g.Expect(key.Tag(t.Context(), client, signed, signed.Digest, cosign.Payload(signed.Digest))).To(Succeed())

			c := writableClient()
			keys := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "capd-system", Name: "keys"},
				Data:       map[string][]byte{"cosign.pub": key.Public},
			}
			g.Expect(c.Create(t.Context(), keys)).To(Succeed())

			p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "capd-system", Name: "docker"}}
			p.Spec.Version = "v1.0.0"
			p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{
				OCI:    repository.String(),
				Verify: &v1alpha2.Verification{SecretRef: v1alpha2.LocalSecretReference{Name: "keys"}},
			}
			installed := install(t, c, p)
			test.change(g, keys, p, signed.WithDigest(""))
			g.Expect(c.Update(t.Context(), keys)).To(Succeed())

			_, _, err = find(t, c, p, test.refresh)
			g.Expect(err).To(MatchError(ContainSubstring(test.message)))
			g.Expect(source.IsUnavailable(err)).To(BeFalse())

			_, err = newPlanner(c).Charts.Installed(t.Context(), p, installed.Digest)
			g.Expect(err).NotTo(HaveOccurred(), "what is installed stays in care")
		})
	}

	t.Run("not by a source that is not available", func(t *testing.T) {
		g := NewWithT(t)
		repository, err := oci.Parse("http://" + registry.Address + "/available")
		g.Expect(err).NotTo(HaveOccurred())

		signed := pushSample(t, client, repository.WithTag("v1.0.0"), "")
		g.Expect(key.Tag(t.Context(), client, signed, signed.Digest, cosign.Payload(signed.Digest))).To(Succeed())

		c := writableClient()
		g.Expect(c.Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "capd-system", Name: "keys"},
			Data:       map[string][]byte{"cosign.pub": key.Public},
		})).To(Succeed())

		p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "capd-system", Name: "docker"}}
		p.Spec.Version = "v1.0.0"
		p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{
			OCI:    repository.String(),
			Verify: &v1alpha2.Verification{SecretRef: v1alpha2.LocalSecretReference{Name: "keys"}},
		}
		installed := install(t, c, p)

		registry.Stop()

		for _, refresh := range []bool{false, true} {
			found, _, err := find(t, c, p, refresh)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found.Digest).To(Equal(installed.Digest))
			g.Expect(found.Outdated != nil).To(Equal(refresh))
		}

		g.Expect(c.Delete(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "capd-system", Name: "keys"},
		})).To(Succeed())
		_, _, err = find(t, c, p, false)
		g.Expect(err).To(HaveField("Reason", v1alpha2.SecretNotFoundReason), "without keys, nothing is trusted")
	})
}
