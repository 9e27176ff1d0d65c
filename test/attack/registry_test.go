package attack

import (
	"archive/tar"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	. "github.com/onsi/gomega"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/test/cosign"
	"github.com/capstan-project/capstan/test/image"
)

// registryAttempts come from registries that break the rules of their protocol.
var registryAttempts = []attempt{
	{"A registry whose tokens are at an inner server", func(a *arena) string {
		i := a.inner()

		return a.attemptedRegistry(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="https://%s/token",service="x"`, i.address))
			w.WriteHeader(http.StatusUnauthorized)
		}))
	}},
	{"A blob that does not have the digest of its manifest", func(a *arena) string {
		a.neverInstalled()

		m := manifestOf(a.small(""))
		m.blob = func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("x", len(metadata)))
		}

		return a.attemptedRegistry(m)
	}},
	{"A manifest with 200,000 layers", func(a *arena) string {
		a.neverInstalled()

		m := manifestOf(a.small(""))
		for n := range 200_000 {
			layer := m.layers[0]
			layer.Annotations = map[string]string{ocispec.AnnotationTitle: fmt.Sprintf("cluster-template-%d.yaml", n)}
			m.layers = append(m.layers, layer)
		}

		return a.attemptedRegistry(m)
	}},
	{"A list of tags whose next page is itself", func(a *arena) string {
		p := a.registryProvider(a.server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/tags/list") {
				http.NotFound(w, r)
				return
			}

			w.Header().Set("Link", fmt.Sprintf(`<%s?n=1&last=%d>; rel="next"`, r.URL.Path, len(r.URL.RawQuery)))
			_, _ = io.WriteString(w, `{"name": "x", "tags": ["v1.0.0"]}`)
		})))
		p.Spec.Version = "~1.0"

		return a.outcomeOf(p)
	}},
	{"An image whose manifests are links to files of the operator", func(a *arena) string {
		a.neverKnown("root:x:0:0")

		layer := image.Layer(
			image.Entry{Name: "capi-manifests/metadata.yaml", Content: metadata},
			image.Entry{Name: "capi-manifests/infrastructure-components.yaml", Type: tar.TypeSymlink, Link: "/etc/passwd"},
			image.Entry{Name: "capi-manifests/../../../../../../tmp/" + a.name, Content: "x"},
		)
		ref := a.publishedAt("images/" + a.name + ":v1.0.0")
		_, err := image.Push(a.ctx, a.publisherClient(), ref, nil, layer)
		a.Expect(err).NotTo(HaveOccurred())

		trust := a.publisherTrust()

		p := a.small("").from(v1alpha2.FetchConfiguration{Image: ref.String(), SecretRef: secretOf(trust)})

		return a.attempted(p, trust)
	}},
	{"A stored chart whose key was withdrawn", func(a *arena) string {
		key := a.key()
		signed := a.publish("v1.0.0")
		a.Expect(key.Tag(a.ctx, a.publisherClient(), signed, signed.Digest, cosign.Payload(signed.Digest))).To(Succeed())

		p, trust, keys := a.verified(key)
		a.Expect(a.attempted(p, trust, keys)).To(ContainSubstring(v1alpha2.HealthyReason))

		keys.Data = map[string][]byte{"cosign.pub": a.key().Public}
		a.Expect(a.tenant.Update(a.ctx, keys)).To(Succeed())

		answer := a.changed(p)
		a.Expect(answer).To(HavePrefix(v1alpha2.UntrustedSourceReason), "the stored chart is used")

		return answer
	}},
}

// asksForPassword is a registry that asks for a user and a password.
var asksForPassword = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
	w.WriteHeader(http.StatusUnauthorized)
})

// registryAt returns the address of a release in a hostile registry.
func registryAt(server string) string { return strings.Replace(server, "https://", "oci://", 1) + "/x" }

// hostileManifest is a registry with one release, of which everything can be wrong.
type hostileManifest struct {
	layers []ocispec.Descriptor
	blobs  map[digest.Digest]string
	blob   http.HandlerFunc // instead of the blobs
}

// manifestOf returns a registry with a provider's release.
func manifestOf(s small) *hostileManifest {
	m := &hostileManifest{blobs: map[digest.Digest]string{}}

	for name, text := range map[string]string{
		"metadata.yaml": metadata, "infrastructure-components.yaml": s.components(),
	} {
		layer := image.NewBlob("application/vnd.test.file", []byte(text))
		layer.Descriptor.Annotations = map[string]string{ocispec.AnnotationTitle: name}
		m.layers = append(m.layers, layer.Descriptor)
		m.blobs[layer.Descriptor.Digest] = text
	}

	return m
}

func (m *hostileManifest) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]

	switch {
	case strings.Contains(r.URL.Path, "/manifests/"):
		config := ocispec.DescriptorEmptyJSON
		manifest := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Config: config, Layers: m.layers}
		manifest.SchemaVersion = 2
		data, _ := json.Marshal(manifest)

		w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
		w.Header().Set("Docker-Content-Digest", digest.FromBytes(data).String())
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		_, _ = w.Write(data)
	case m.blob != nil:
		m.blob(w, r)
	case m.blobs[digest.Digest(name)] != "":
		_, _ = io.WriteString(w, m.blobs[digest.Digest(name)])
	default:
		http.NotFound(w, r)
	}
}

// registryProvider returns a provider whose release is in a hostile registry, after it has created the
// Secret for it.
func (a *arena) registryProvider(server string) *v1alpha2.InfrastructureProvider {
	trust := a.trust(nil)
	a.create(trust)

	return a.small("").from(v1alpha2.FetchConfiguration{OCI: registryAt(server), SecretRef: secretOf(trust)})
}

// attemptedRegistry returns the operator's answer to a provider from a hostile registry.
func (a *arena) attemptedRegistry(handler http.Handler) string {
	a.Helper()

	return a.outcomeOf(a.registryProvider(a.server(handler)))
}

func (a *arena) outcomeOf(p *v1alpha2.InfrastructureProvider) string {
	a.Helper()
	a.create(p)

	return a.outcome(p)
}

// neverInstalled declares that the attempt's provider must not be installed.
func (a *arena) neverInstalled() {
	a.neverExists(&corev1.ConfigMap{ObjectMeta: named(tenant, a.name)})
}

func (a *arena) publishedAt(path string) oci.Reference {
	ref, err := oci.Parse(a.publisher.Address + "/" + path)
	a.Expect(err).NotTo(HaveOccurred())

	return ref
}

func (a *arena) publisherTrust() *corev1.Secret {
	return a.trust(map[string]string{"ca.crt": string(a.publisher.CA)})
}

func (a *arena) key() cosign.Key {
	key, err := cosign.NewKey()
	a.Expect(err).NotTo(HaveOccurred())

	return key
}

// publish pushes the files of the attempt's release to the attacker's registry.
func (a *arena) publish(tag string) oci.Reference {
	var layers []image.Blob

	for name, text := range map[string]string{
		"metadata.yaml": metadata, "infrastructure-components.yaml": a.small("").components(),
	} {
		layer := image.NewBlob("application/vnd.test.file", []byte(text))
		layer.Descriptor.Annotations = map[string]string{ocispec.AnnotationTitle: name}
		layers = append(layers, layer)
	}

	ref := a.publishedAt("files/" + a.name + ":" + tag)
	desc, err := image.PushArtifact(a.ctx, a.publisherClient(), ref, "application/vnd.test", layers...)
	a.Expect(err).NotTo(HaveOccurred())

	return ref.WithDigest(desc.Digest)
}

// verified returns a provider from the attacker's registry that requires a signature by the key, and
// the Secrets that it needs.
func (a *arena) verified(key cosign.Key) (*v1alpha2.InfrastructureProvider, *corev1.Secret, *corev1.Secret) {
	trust := a.publisherTrust()
	keys := &corev1.Secret{ObjectMeta: named(tenant, a.name+"-keys"), Data: map[string][]byte{"cosign.pub": key.Public}}
	p := a.small("").from(v1alpha2.FetchConfiguration{
		OCI: a.publisher.Address + "/files/" + a.name, SecretRef: secretOf(trust),
		Verify: &v1alpha2.Verification{SecretRef: *secretOf(keys)},
	})

	return p, trust, keys
}
