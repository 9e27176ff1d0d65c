package fetch

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/controllers/access"
)

// provider returns an InfrastructureProvider with a spec.
func provider(name string, spec v1alpha2.ProviderSpec) v1alpha2.Provider {
	p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	p.Spec = spec

	return p
}

func fetching(config v1alpha2.FetchConfiguration) v1alpha2.ProviderSpec {
	return v1alpha2.ProviderSpec{FetchConfig: &config}
}

// newReader returns a reader of Secrets, given by name, in the namespace "default", and of other
// objects.
func newReader(secrets map[string]map[string]string, others ...client.Object) client.Reader {
	builder := fake.NewClientBuilder().WithObjects(others...)

	for name, content := range secrets {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Data:       map[string][]byte{},
		}
		for key, value := range content {
			secret.Data[key] = []byte(value)
		}

		builder.WithObjects(secret)
	}

	return builder.Build()
}

// origin returns where a provider's source has v1.0.0.
func origin(t *testing.T, r *Resolver, p v1alpha2.Provider) string {
	t.Helper()

	g := NewWithT(t)
	found, err := r.Source(p)
	g.Expect(err).NotTo(HaveOccurred())

	version, err := found.Resolve(t.Context(), source.Request{Version: "v1.0.0"})
	g.Expect(err).NotTo(HaveOccurred())

	return version.Origin.Place
}

func TestSource(t *testing.T) {
	r := &Resolver{Readers: &access.Readers{}, Registry: &Registry{}, Catalog: CatalogFile(DefaultConfigFile)}

	for name, c := range map[string]struct {
		provider v1alpha2.Provider
		origin   string
	}{
		"without fetchConfig": {
			provider("docker", v1alpha2.ProviderSpec{}),
			"https://github.com/kubernetes-sigs/cluster-api/releases/download/v1.0.0/" +
				"infrastructure-components-development.yaml",
		},
		"with a fetchConfig that names no source": {
			provider("docker", fetching(v1alpha2.FetchConfiguration{})),
			"https://github.com/kubernetes-sigs/cluster-api/releases/download/v1.0.0/" +
				"infrastructure-components-development.yaml",
		},
		"url": {
			provider("x", fetching(v1alpha2.FetchConfiguration{URL: "https://github.com/o/r/releases/latest/x.yaml"})),
			"https://github.com/o/r/releases/download/v1.0.0/x.yaml",
		},
		"http": {
			provider("x", fetching(v1alpha2.FetchConfiguration{HTTP: "https://mirror/x"})),
			"https://mirror/x/v1.0.0/infrastructure-components.yaml",
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(origin(t, r, c.provider)).To(Equal(c.origin))
		})
	}

	t.Run("selector", func(t *testing.T) {
		g := NewWithT(t)
		selector := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		r := &Resolver{Readers: &access.Readers{APIReader: newReader(nil)}}
		p := provider("x", fetching(v1alpha2.FetchConfiguration{Selector: selector}))
		reader := inputsOf(t, r, p).reader
		found, err := r.Source(p)
		g.Expect(err).NotTo(HaveOccurred())

		g.Expect(found.Place).To(Equal(&source.ConfigMaps{Reader: reader, Namespace: "default", Selector: selector}))
		g.Expect(found.Provider).To(Equal(source.Provider("InfrastructureProvider", "x")))
	})

	t.Run("selector, watched", func(t *testing.T) {
		g := NewWithT(t)
		selector := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		p := provider("x", fetching(v1alpha2.FetchConfiguration{Selector: selector}))
		r := &Resolver{Readers: &access.Readers{APIReader: newReader(nil)}, Watched: func(
			kind, namespace string, matches func(*metav1.PartialObjectMetadata) bool,
		) ([]*metav1.PartialObjectMetadata, bool) {
			known := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: "v1.0.0", Labels: selector.MatchLabels, UID: "1", ResourceVersion: "2",
			}}

			g.Expect(matches(&metav1.PartialObjectMetadata{})).To(BeFalse())

			if kind != "ConfigMap" || !matches(known) {
				return nil, true
			}

			return []*metav1.PartialObjectMetadata{known}, true
		}}

		found, err := r.Source(p)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found.Versions(t.Context())).To(Equal([]source.Version{
			{Name: "v1.0.0", ID: "ConfigMap v1.0.0", Fingerprint: "1/2"},
		}))

		p.GetSpec().ServiceAccountName = "tenant"
		found, err = r.Source(p)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found.Place.(*source.ConfigMaps).Watched).To(BeNil(), "the account may not be allowed to list them")
	})

	t.Run("directory", func(t *testing.T) {
		g := NewWithT(t)
		folder := t.TempDir()
		g.Expect(os.MkdirAll(filepath.Join(folder, "infrastructure-x", "v1.0.0"), 0o755)).To(Succeed())

		found, err := r.Source(provider("x", fetching(v1alpha2.FetchConfiguration{Directory: folder})))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found.Versions(t.Context())).To(HaveExactElements(And(
			HaveField("Name", "v1.0.0"),
			HaveField("Fingerprint", Not(BeEmpty())),
			HaveField("Origin.Place", BeEmpty()),
		)))
	})

	t.Run("unknown provider", func(t *testing.T) {
		g := NewWithT(t)
		_, err := r.Source(provider("unknown", v1alpha2.ProviderSpec{}))
		g.Expect(err).To(MatchError(&UnknownProviderError{Type: "InfrastructureProvider", Name: "unknown"}))
		g.Expect(err).To(MatchError(ContainSubstring(
			"InfrastructureProvider unknown is neither in clusterctl's list of providers nor in the operator's configuration")))
	})

	for name, want := range map[string]string{
		"infrastructure-docker": "name it docker, or set spec.fetchConfig",
		"docker-infrastructure": "name it docker, or set spec.fetchConfig",
		"dokcer":                "name it docker, or set spec.fetchConfig",
		"nothing-like-it":       "correct its name (`capstan providers` lists all), or set spec.fetchConfig",
	} {
		t.Run("unknown provider "+name, func(t *testing.T) {
			_, err := r.Source(provider(name, v1alpha2.ProviderSpec{}))
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(want)))
		})
	}

	t.Run("the operator's files", func(t *testing.T) {
		_, err := r.Source(provider("x", fetching(v1alpha2.FetchConfiguration{URL: "file:///etc"})))
		NewWithT(t).Expect(transport.Is(err, transport.Refused)).To(BeTrue())
	})
}

func TestConfigFile(t *testing.T) {
	g := NewWithT(t)
	config := filepath.Join(t.TempDir(), "clusterctl.yaml")
	r := &Resolver{Readers: &access.Readers{}, Registry: &Registry{}, Catalog: CatalogFile(config)}

	_, err := r.Catalog()
	g.Expect(err).To(MatchError(ContainSubstring("the operator's configuration")))

	for _, host := range []string{"one", "two"} {
		content := "providers: [{name: x, type: InfrastructureProvider, url: \"https://" + host + "/x.yaml\"}]"
		g.Expect(os.WriteFile(config, []byte(content), 0o600)).To(Succeed())

		g.Expect(origin(t, r, provider("x", v1alpha2.ProviderSpec{}))).To(Equal("https://" + host + "/x.yaml"))
	}
}

func TestImageOverrides(t *testing.T) {
	g := NewWithT(t)
	config := filepath.Join(t.TempDir(), "clusterctl.yaml")
	r := &Resolver{Readers: &access.Readers{}, Registry: &Registry{}, Catalog: CatalogFile(config)}

	_, err := r.ImageOverrides()
	g.Expect(err).To(MatchError(ContainSubstring("the operator's configuration")))

	g.Expect(os.WriteFile(config, []byte("images: {all: {repository: mirror}}"), 0o600)).To(Succeed())

	overrides, err := r.ImageOverrides()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(overrides).To(MatchYAML("{all: {repository: mirror}}"))
}

func TestDigest(t *testing.T) {
	for name, c := range map[string]struct {
		spec v1alpha2.ProviderSpec
		want string
	}{
		"without fetchConfig": {v1alpha2.ProviderSpec{}, ""},
		"of the components":   {fetching(v1alpha2.FetchConfiguration{URL: "https://x", Digest: "sha256:a"}), "sha256:a"},
		"of an artifact":      {fetching(v1alpha2.FetchConfiguration{OCI: "x/y", Digest: "sha256:a"}), ""},
		"of an image":         {fetching(v1alpha2.FetchConfiguration{Image: "x/y", Digest: "sha256:a"}), ""},
	} {
		NewWithT(t).Expect(Digest(provider("x", c.spec))).To(Equal(c.want), name)
	}
}
