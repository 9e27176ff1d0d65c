package catalog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/config"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/chartgen/transport"
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

		version, err := from.Resolve(t.Context(), source.Request{Version: "v1.0.0"})
		g.Expect(err).NotTo(HaveOccurred(), e.Label())
		g.Expect(version.Origin.Place).
			To(
				MatchRegexp(`^https://github\.com/[^/]+/[^/]+/releases/download/v1\.0\.0/[a-z-]+-components(-development)?\.yaml$`),
			)
	}

	_, found = c.Find(v1alpha2.AddonProviderType, "aws")
	g.Expect(found).To(BeFalse())
}

// TestClusterctlsEntries: the entries are those of clusterctl, which this package does not import for its many
// dependencies.
func TestClusterctlsEntries(t *testing.T) {
	for name, configured := range map[string]string{
		"the built-in ones": "",
		"others": `
- {name: aws, type: InfrastructureProvider, url: "https://${HERE}/latest/infrastructure-components.yaml"}
- {name: aws, type: AddonProvider, url: "https://one.example.com/latest/addon-components.yaml"}
- {name: aws, type: AddonProvider, url: "https://two.example.com/latest/addon-components.yaml"}
- {name: cluster-api, type: CoreProvider, url: /local/cluster-api/v1.0.0/core-components.yaml}
`,
		"no name":             `[{type: AddonProvider, url: "https://a"}]`,
		"no URL":              `[{name: a, type: AddonProvider}]`,
		"no type":             `[{name: a, url: "https://a"}]`,
		"in upper case":       `[{name: A, type: AddonProvider, url: "https://a"}]`,
		"another core":        `[{name: a, type: CoreProvider, url: "https://a"}]`,
		"the name of core":    `[{name: cluster-api, type: AddonProvider, url: "https://a"}]`,
		"an invalid name":     `[{name: a_b, type: AddonProvider, url: "https://a"}]`,
		"an invalid URL":      `[{name: a, type: AddonProvider, url: "https://a:b"}]`,
		"an invalid variable": `[{name: a, type: AddonProvider, url: "https://${a"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			t.Setenv("HERE", "here.example.com")

			reader := config.NewMemoryReader()
			reader.Set(config.ProvidersConfigKey, configured)

			client, err := config.New(t.Context(), "", config.InjectReader(reader))
			g.Expect(err).NotTo(HaveOccurred())

			theirs, refused := client.Providers().List()

			if configured == "" && os.Getenv("UPDATE_PROVIDERS") != "" {
				updateBuiltIn(t, theirs)
			}

			ours, err := listEntries([]byte(configured))
			g.Expect(err == nil).To(Equal(refused == nil), "%v, %v", err, refused)
			g.Expect(ours).To(HaveLen(len(theirs)))

			for i, e := range theirs {
				ours[i].Configured = false
				g.Expect(ours[i]).To(Equal(Entry{Type: v1alpha2.ProviderType(e.Type()), Name: e.Name(), URL: e.URL()}),
					"run make generate if clusterctl has other providers")
			}
		})
	}
}

// updateBuiltIn writes the file with clusterctl's list.
func updateBuiltIn(t *testing.T, list []config.Provider) {
	t.Helper()

	text := "# Generated from clusterctl's list by make generate.\n"
	for _, e := range list {
		text += fmt.Sprintf("- {type: %s, name: %s, url: %q}\n", e.Type(), e.Name(), e.URL())
	}

	builtIn = func() ([]Entry, error) { return parseEntries([]byte(text)) }

	NewWithT(t).Expect(os.WriteFile("providers.yaml", []byte(text), 0o600)).To(Succeed())
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

	open := func(name string) (*source.Source, error) {
		e, found := c.Find(v1alpha2.InfrastructureProviderType, name)
		g.Expect(found).To(BeTrue())

		return c.Open(e, access)
	}

	artifact, err := open("aws")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(artifact.Kind).To(Equal("oci"))

	version, err := artifact.Resolve(t.Context(), source.Request{Version: "v1.1.0"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(version.Origin.Place).To(Equal("oci://registry.example.com:5000/capi/aws:v1.1.0"))

	image, err := open("azure")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(image.Kind).To(Equal("image"))
	g.Expect(image.Default).To(Equal("v1.0.0"))

	g.Expect(asked).To(BeEmpty(), "credentials are read with the first request")

	for _, s := range []*source.Source{artifact, image} {
		_, err = s.Fetch(t.Context(), source.Version{Name: "v1.0.0"})
		g.Expect(err).To(MatchError("no registry"))
	}

	g.Expect(asked).To(Equal([]string{
		"oci://registry.example.com:5000/capi/aws", "oci://registry.example.com/capi/azure:v1.0.0",
	}))

	_, err = open("broken")
	g.Expect(transport.Is(err, transport.Refused)).To(BeTrue())
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
		"a: b\ntoken: hush: hush\n":                             "line 2: not YAML",
		"providers: hush":                                       "not a list of providers, each with name, type and url",
		"providers: [{name: a, type: AddonProvider}]":           "the URL is missing or invalid",
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

	c, err := LoadUser("")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Entries).NotTo(BeEmpty())

	for _, own := range []string{".cluster-api", "cluster-api"} { // the later one takes precedence
		g.Expect(os.Mkdir(filepath.Join(folder, own), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(folder, own, "clusterctl.yaml"), []byte("MINE: "+own), 0o600)).To(Succeed())

		c, err = LoadUser("")
		g.Expect(err).NotTo(HaveOccurred())

		value, _ := c.Variable("MINE")
		g.Expect(value).To(Equal(own))
	}
}

// TestVariables: values are as clusterctl reads them, and the environment precedes them.
func TestVariables(t *testing.T) {
	g := NewWithT(t)
	c, err := Parse([]byte("file: from file\nBoth: from file\nNUMBER: 1000000\nFRACTION: 1.50\nSWITCH: true\nWORD: yes\n" +
		"NOTHING:\nLIST: [a]\nMAP: {a: b}\nEMPTY: ''\n"))
	g.Expect(err).NotTo(HaveOccurred())
	t.Setenv("BOTH", "from environment")
	t.Setenv("EMPTY_HERE", "")

	for name, want := range map[string]string{
		"FILE":       "from file",
		"file":       "from file",
		"BOTH":       "from environment",
		"NUMBER":     "1000000",
		"FRACTION":   "1.5",
		"SWITCH":     "true",
		"WORD":       "yes",
		"EMPTY":      "",
		"EMPTY_HERE": "",
	} {
		value, set := c.Variable(name)
		g.Expect(set).To(BeTrue(), name)
		g.Expect(value).To(Equal(want), name)
	}

	for _, name := range []string{"NOTHING", "LIST", "MAP", "UNKNOWN"} {
		_, set := c.Variable(name)
		g.Expect(set).To(BeFalse(), name)
	}
}

func TestOpenReadsNoCredentials(t *testing.T) {
	g := NewWithT(t)
	c, err := Parse(nil)
	g.Expect(err).NotTo(HaveOccurred())

	calls := 0
	_, err = c.Open(
		Entry{Type: "CoreProvider", Name: "cluster-api", URL: "https://github.com/o/r"},
		Access{Web: func(context.Context, source.Server) (transport.Options, error) {
			calls++
			return transport.Options{}, nil
		}},
	)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(calls).To(BeZero(), "credentials are read with the first request")
}
