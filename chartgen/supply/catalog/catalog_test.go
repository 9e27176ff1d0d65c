package catalog

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/supply/oci"
	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/chartgen/supply/web"
)

const configuration = `
providers:
- name: aws
  type: InfrastructureProvider
  url: https://mirror.example.com/aws/latest/infrastructure-components.yaml
- name: ours
  type: AddonProvider
  url: ${HERE}/addon-ours/v1.0.0/addon-components.yaml
images:
  all: {repository: mirror.example.com/images}
github-token: t0ken
GITLAB_ACCESS_TOKEN: glpat
EXP_MACHINE_POOL: true
`

func TestBuiltInEntries(t *testing.T) {
	g := NewWithT(t)
	c, err := Parse(nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(c.Entries)).To(BeNumerically(">", 60))
	core, found := c.Find(v1alpha2.CoreProviderType, "cluster-api")
	g.Expect(found).To(BeTrue())
	g.Expect(core).
		To(Equal(Entry{
			Type: "CoreProvider",
			Name: "cluster-api",
			URL:  "https://github.com/kubernetes-sigs/cluster-api/releases/latest/core-components.yaml",
		}))

	for _, e := range c.Entries {
		from, err := c.Open(e, Access{})
		g.Expect(err).NotTo(HaveOccurred(), e.Label())
		g.Expect(from.(source.Remote).Version("v1.0.0").Origin).
			To(
				MatchRegexp(`^https://github\.com/[^/]+/[^/]+/releases/download/v1\.0\.0/[a-z-]+-components(-development)?\.yaml$`),
			)
	}

	_, found = c.Find(v1alpha2.AddonProviderType, "aws")
	g.Expect(found).To(BeFalse())
}

func TestConfiguredEntries(t *testing.T) {
	g := NewWithT(t)
	folder := t.TempDir()
	t.Setenv("HERE", folder)

	c, err := Parse([]byte(configuration))
	g.Expect(err).NotTo(HaveOccurred())

	aws, _ := c.Find(v1alpha2.InfrastructureProviderType, "aws")
	g.Expect(aws).
		To(Equal(Entry{
			Type:       "InfrastructureProvider",
			Name:       "aws",
			URL:        "https://mirror.example.com/aws/latest/infrastructure-components.yaml",
			Configured: true,
		}))

	azure, _ := c.Find(v1alpha2.InfrastructureProviderType, "azure")
	g.Expect(azure.Configured).To(BeFalse())
	g.Expect(c.Images).To(MatchYAML("all: {repository: mirror.example.com/images}"))

	ours, found := c.Find(v1alpha2.AddonProviderType, "ours")
	g.Expect(found).To(BeTrue())
	g.Expect(os.MkdirAll(filepath.Join(folder, "addon-ours", "v1.0.0"), 0o755)).To(Succeed())

	from, err := c.Open(ours, Access{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(from.Versions(t.Context())).To(HaveExactElements(HaveField("Name", "v1.0.0")))
}

func TestRegistryEntries(t *testing.T) {
	g := NewWithT(t)
	c, err := Parse([]byte(`
providers:
- {name: aws, type: InfrastructureProvider, url: "oci://registry.example.com:5000/capi/aws"}
- {name: azure, type: InfrastructureProvider, url: "image://registry.example.com/capi/azure:v1.0.0"}
- {name: broken, type: InfrastructureProvider, url: "oci://registry.example.com"}
`))
	g.Expect(err).NotTo(HaveOccurred())

	var asked []string

	access := Access{Registry: func(_ context.Context, ref oci.Reference) (source.Access, error) {
		asked = append(asked, ref.String())
		return source.Access{}, errors.New("no registry")
	}}

	open := func(name string) (source.Source, error) {
		e, found := c.Find(v1alpha2.InfrastructureProviderType, name)
		g.Expect(found).To(BeTrue())

		return c.Open(e, access)
	}

	artifact, err := open("aws")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(artifact).To(BeAssignableToTypeOf(&source.Artifact{}))
	g.Expect(artifact.(source.Remote).Version("v1.1.0").Origin).To(
		Equal("oci://registry.example.com:5000/capi/aws:v1.1.0"))

	image, err := open("azure")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(image).To(BeAssignableToTypeOf(&source.Image{}))
	g.Expect(image.(source.Remote).DefaultVersion()).To(Equal("v1.0.0"))

	g.Expect(asked).To(BeEmpty(), "credentials are read with the first request")

	for _, s := range []source.Source{artifact, image} {
		_, err = s.Fetch(t.Context(), s.(source.Remote).Version("v1.0.0"))
		g.Expect(err).To(MatchError("no registry"))
	}

	g.Expect(asked).To(Equal([]string{
		"oci://registry.example.com:5000/capi/aws", "oci://registry.example.com/capi/azure:v1.0.0",
	}))

	_, err = open("broken")
	g.Expect(err).To(BeAssignableToTypeOf(&source.AddressError{}))
	g.Expect(err).To(MatchError(ContainSubstring("is not an OCI reference")))
}

func TestPublicToken(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("HERE", "")

	c, err := Parse([]byte(configuration))
	g.Expect(err).NotTo(HaveOccurred())

	gitHub := source.Server{Host: "github.com", TLS: true, Tokens: []string{"GITHUB_TOKEN", "github-token"}}
	elsewhere := source.Server{Host: "github.com.evil.example", TLS: true, Tokens: gitHub.Tokens}
	g.Expect(c.PublicToken(gitHub)).To(Equal("t0ken"))

	gitLab := source.Server{Host: "gitlab.com", TLS: true, Tokens: []string{"GITLAB_ACCESS_TOKEN"}}
	g.Expect(c.PublicToken(gitLab)).To(Equal("glpat"))
	g.Expect(c.PublicToken(source.Server{Host: "github.com", Tokens: gitHub.Tokens})).To(BeEmpty(), "without TLS")
	g.Expect(c.PublicToken(elsewhere)).To(BeEmpty(), "a resource may name any server")
	t.Setenv("GITHUB_TOKEN", "environment")
	g.Expect(c.PublicToken(gitHub)).To(Equal("environment"))
}

func TestLoadErrors(t *testing.T) {
	for content, message := range map[string]string{
		"token: [hush":                      "not YAML",
		"providers: hush":                   "not a list of providers, each with name, type and url",
		"providers: [{name: a, type: Cat}]": "URL value cannot be empty",
		"providers: [{name: a, type: Cat, url: \"https://a\"}]": "invalid provider type",
	} {
		file := filepath.Join(t.TempDir(), "clusterctl.yaml")
		g := NewWithT(t)
		g.Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())
		_, err := Load(file)
		g.Expect(err).
			To(MatchError(And(ContainSubstring(file), ContainSubstring(message), Not(ContainSubstring("hush")))), content)
	}

	_, err := Load(filepath.Join(t.TempDir(), "absent"))
	NewWithT(t).Expect(err).To(MatchError(os.ErrNotExist))
}

func TestLoadUser(t *testing.T) {
	g := NewWithT(t)
	folder := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", folder)
	t.Setenv("HOME", folder)

	c, err := LoadUser()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Entries).NotTo(BeEmpty())

	g.Expect(os.Mkdir(filepath.Join(folder, "cluster-api"), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(folder, "cluster-api", "clusterctl.yaml"), []byte("github-token: mine"), 0o600)).
		To(Succeed())
	t.Setenv("GITHUB_TOKEN", "")
	g.Expect(os.Unsetenv("GITHUB_TOKEN")).To(Succeed())

	c, err = LoadUser()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Variable("GITHUB_TOKEN")).To(Equal("mine"))
}

func TestOpenReadsNoCredentials(t *testing.T) {
	g := NewWithT(t)
	c, err := Parse(nil)
	g.Expect(err).NotTo(HaveOccurred())

	calls := 0
	_, err = c.Open(
		Entry{Type: "CoreProvider", Name: "cluster-api", URL: "https://github.com/o/r"},
		Access{Credentials: func(context.Context, source.Server) (web.Credentials, error) {
			calls++
			return web.Credentials{}, nil
		}},
	)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(calls).To(BeZero(), "credentials are read with the first request")
}
