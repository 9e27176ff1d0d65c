package fetch

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/chartgen/supply/web"
	"github.com/capstan-project/capstan/controllers/values"
	"github.com/capstan-project/capstan/test/bed"
)

// provider is one of the kind InfrastructureProvider with a spec.
func provider(name string, spec v1alpha2.ProviderSpec) v1alpha2.Provider {
	p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	p.Spec = spec

	return p
}

func fetching(fetch v1alpha2.FetchConfiguration) v1alpha2.ProviderSpec {
	return v1alpha2.ProviderSpec{FetchConfig: &fetch}
}

func TestWhereAResourceLeads(t *testing.T) {
	r := &Resolver{Registry: &Registry{}, Config: &ConfigFile{Path: DefaultConfigFile}}

	for name, test := range map[string]struct {
		provider v1alpha2.Provider
		origin   string // of v1.0.0
	}{
		"without fetchConfig, to clusterctl's list": {provider("docker", v1alpha2.ProviderSpec{}), "https://github.com/kubernetes-sigs/cluster-api/releases/download/v1.0.0/infrastructure-components-development.yaml"},
		"url":  {provider("x", fetching(v1alpha2.FetchConfiguration{URL: "https://github.com/o/r/releases/latest/x.yaml"})), "https://github.com/o/r/releases/download/v1.0.0/x.yaml"},
		"http": {provider("x", fetching(v1alpha2.FetchConfiguration{HTTP: "https://mirror/x"})), "https://mirror/x/v1.0.0/infrastructure-components.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			from, err := r.Source(test.provider)
			g := NewWithT(t)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(from.(source.Remote).Version("v1.0.0").Origin).To(Equal(test.origin))
		})
	}

	g := NewWithT(t)
	folder := t.TempDir()
	g.Expect(os.MkdirAll(filepath.Join(folder, "infrastructure-x", "v1.0.0"), 0o755)).To(Succeed())
	from, err := r.Source(provider("x", fetching(v1alpha2.FetchConfiguration{Directory: folder})))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(from.Versions(t.Context())).
		To(HaveExactElements(And(HaveField("Name", "v1.0.0"), HaveField("Fingerprint", Not(BeEmpty())), HaveField("Origin", BeEmpty()))))

	_, err = r.Source(provider("nobody", v1alpha2.ProviderSpec{}))
	g.Expect(err).To(MatchError(&UnknownProviderError{Type: "InfrastructureProvider", Name: "nobody"}))
	g.Expect(err).To(MatchError(ContainSubstring("InfrastructureProvider nobody is in neither clusterctl's list")))
	_, err = r.Source(provider("x", fetching(v1alpha2.FetchConfiguration{URL: "file:///etc"})))
	g.Expect(err).
		To(BeAssignableToTypeOf(&source.AddressError{}), "a resource does not lead into the operator's files this way")
}

func TestTheConfigurationIsReadAnewWhenItChanges(t *testing.T) {
	g := NewWithT(t)
	config := &ConfigFile{Path: filepath.Join(t.TempDir(), "clusterctl.yaml")}
	r := &Resolver{Registry: &Registry{}, Config: config}
	_, err := config.Catalog()
	g.Expect(err).To(MatchError(ContainSubstring("the operator's configuration")))

	for i, host := range []string{"one", "two"} {
		g.Expect(os.WriteFile(config.Path, []byte("providers: [{name: x, type: InfrastructureProvider, url: \"https://"+host+"/x.yaml\"}]"), 0o600)).
			To(Succeed())

		later := time.Now().Add(time.Duration(i) * time.Second)
		g.Expect(os.Chtimes(config.Path, later, later)).To(Succeed())

		from, err := r.Source(provider("x", v1alpha2.ProviderSpec{}))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(from.(source.Remote).Version("v1.0.0").Origin).To(Equal("https://" + host + "/x.yaml"))
	}
}

func TestImagesOfTheConfigurationAndOfTheProvider(t *testing.T) {
	g := NewWithT(t)
	config := &ConfigFile{Path: filepath.Join(t.TempDir(), "clusterctl.yaml")}
	g.Expect(os.WriteFile(config.Path, []byte("images: {all: {repository: mirror}, infrastructure-x: {tag: v1}}"), 0o600)).
		To(Succeed())
	r := &Resolver{Registry: &Registry{}, Config: config}

	for own, want := range map[string]string{
		"":                            "{all: {repository: mirror}, infrastructure-x: {tag: v1}}",
		"infrastructure-x: {tag: v2}": "{all: {repository: mirror}, infrastructure-x: {tag: v2}}",
		"[not a map":                  "'[not a map'",
	} {
		variables := map[string]string{values.ImagesKey: own}
		g.Expect(r.AddImages(variables)).To(Succeed())

		if own == "[not a map" {
			g.Expect(variables).To(HaveKeyWithValue(values.ImagesKey, own))
			continue
		}

		g.Expect(variables[values.ImagesKey]).To(MatchYAML(want))
	}
}

func TestCredentials(t *testing.T) {
	g := NewWithT(t)
	b, err := bed.Start(t.Context(), bed.Options{Nodes: -1, WithoutCertManager: true})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = b.Stop() })

	c, err := client.New(b.Config(), client.Options{})
	g.Expect(err).NotTo(HaveOccurred())

	for name, data := range map[string]map[string]string{
		"basic":     {"username": "me", "password": "pass", "ca.crt": "CA", "tls.crt": "certificate", "tls.key": "key"},
		"token":     {"token": "t", "GITHUB_TOKEN": "other"},
		"only-ca":   {"ca.crt": "CA"},
		"variables": {"GITHUB_TOKEN": "hub", "gitlab-access-token": "lab", "AWS_B64ENCODED_CREDENTIALS": "aws"},
	} {
		g.Expect(c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, StringData: data})).
			To(Succeed())
	}

	var (
		gitHub = source.Server{Host: "git.example.com", Tokens: []string{"GITHUB_TOKEN", "github-token"}}
		gitLab = source.Server{Host: "lab.example.com", Tokens: []string{"GITLAB_ACCESS_TOKEN", "gitlab-access-token"}}
		plain  = source.Server{Host: "mirror.example.com"}
	)
	for name, test := range map[string]struct {
		secretRef, variables string
		server               source.Server
		want                 web.Credentials
	}{
		"name, password and certificates":         {"basic", "variables", gitHub, web.Credentials{Username: "me", Password: "pass", CA: []byte("CA"), Certificate: []byte("certificate"), Key: []byte("key")}},
		"a token":                                 {"token", "", plain, web.Credentials{Token: "t"}},
		"of the variables, GitHub's for GitHub":   {"", "variables", gitHub, web.Credentials{Token: "hub"}},
		"of the variables, GitLab's for GitLab":   {"", "variables", gitLab, web.Credentials{Token: "lab"}},
		"of the variables, none for others":       {"", "variables", plain, web.Credentials{}},
		"a certificate here, the token there":     {"only-ca", "variables", gitHub, web.Credentials{CA: []byte("CA"), Token: "hub"}},
		"variables that are not there":            {"", "absent", gitHub, web.Credentials{Token: "otherwise"}},
		"none at all":                             {"", "", plain, web.Credentials{Token: "otherwise"}},
		"of the operator when there are no other": {"only-ca", "", gitHub, web.Credentials{CA: []byte("CA"), Token: "otherwise"}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := v1alpha2.ProviderSpec{SecretName: test.variables}
			if test.secretRef != "" {
				spec.FetchConfig = &v1alpha2.FetchConfiguration{SecretRef: &v1alpha2.LocalSecretReference{Name: test.secretRef}}
			}

			otherwise := func(source.Server) string { return "otherwise" }
			if name == "of the variables, none for others" {
				otherwise = nil
			}

			r := &Resolver{Reader: c}
			g := NewWithT(t)
			g.Expect(r.credentials(provider("x", spec), otherwise)(t.Context(), test.server)).To(Equal(test.want))
		})
	}

	absent := provider(
		"x",
		fetching(v1alpha2.FetchConfiguration{SecretRef: &v1alpha2.LocalSecretReference{Name: "absent"}}),
	)
	_, err = (&Resolver{Reader: c}).credentials(absent, nil)(context.Background(), gitHub)
	g.Expect(err).
		To(MatchError(ContainSubstring("Secret default/absent with the source's credentials does not exist; create it")))
}
