package controllers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// allFlags returns a value for each flag that is not its default.
func allFlags(t *testing.T) map[string]string {
	t.Helper()

	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	(&Config{}).BindFlags(set)

	values := map[string]string{}

	set.VisitAll(func(f *pflag.Flag) {
		switch f.Value.Type() {
		case "bool":
			values[f.Name] = map[string]string{"true": "false", "false": "true"}[f.DefValue]
		case "int":
			values[f.Name] = "7"
		case "duration":
			values[f.Name] = "2h0m0s"
		case "stringSlice":
			values[f.Name] = `a,"b,c"`
		default:
			values[f.Name] = "x, y"
		}
	})

	return values
}

// Every flag that the operator has reaches the command line: what one publishes sets the other.
func TestPublishedFlags(t *testing.T) {
	g := NewWithT(t)
	c := fake.NewFakeClient()
	operator, program := &Config{}, &Config{}

	g.Expect(operator.Set(allFlags(t))).To(BeEmpty())

	publisher := &Publisher{Client: c, Namespace: "ns", Version: "v1.0.0", Config: operator}
	g.Expect(publisher.Publish(t.Context())).To(Succeed())

	published, err := ReadPublished(t.Context(), c, "ns")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(published.Version).To(Equal("v1.0.0"))
	g.Expect(published.Flags).To(Equal(allFlags(t)))

	g.Expect(program.Set(published.Flags)).To(BeEmpty())
	g.Expect(program).To(Equal(operator))
}

func TestConfigSet(t *testing.T) {
	g := NewWithT(t)
	c := &Config{}

	g.Expect(c.Set(map[string]string{"of-a-newer-operator": "1", "another": "2", "concurrency": "9"})).To(
		Equal([]string{"another", "of-a-newer-operator"}))
	g.Expect(c.Options.Concurrency).To(Equal(9))
	g.Expect(c.Options.ClusterctlInventory).To(BeTrue(), "a default")

	_, err := c.Set(map[string]string{"concurrency": "many"})
	g.Expect(err).To(MatchError(ContainSubstring("concurrency")))
}

// Files without secrets are published, so that the command line knows them; those with credentials are not.
func TestConfigFiles(t *testing.T) {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	c := &Config{}
	c.BindFlags(set)

	var described []string

	set.VisitAll(func(f *pflag.Flag) {
		if strings.HasPrefix(f.Usage, "File ") || strings.HasPrefix(f.Usage, "Configuration file ") {
			described = append(described, f.Name)
		}
	})

	files := []string{"registry-config"}
	for _, f := range c.Files() {
		files = append(files, f.Name)
	}

	NewWithT(t).Expect(files).To(ConsistOf(described))
}

// What may be secret is not published, nor what is too large for a ConfigMap.
func TestPublishedFiles(t *testing.T) {
	const (
		configuration = "GITHUB_TOKEN: secret\nproviders: []\nimages: {all: {tag: v1}}\n"
		public        = "images:\n  all:\n    tag: v1\nproviders: []\n"
		credentials   = "providers:\n- {name: own, type: InfrastructureProvider, url: 'https://me:secret@example.com/x'}\n"
	)

	for name, test := range map[string]struct{ flag, content, want string }{
		"certificates":                {"registry-ca", "certificate", "certificate"},
		"a private key":               {"registry-ca", "certificate\n-----BEGIN EC PRIVATE KEY-----", ""},
		"too much":                    {"registry-ca", strings.Repeat("x", maxFiles+1), ""},
		"a public key":                {"chart-repository-verify-keys", "key", "key"},
		"the configuration":           {"config", configuration, public},
		"one with variables only":     {"config", "GITHUB_TOKEN: secret\n", ""},
		"one with credentials":        {"config", credentials, ""},
		"one that is damaged":         {"config", "secret", ""},
		"credentials for registries":  {"registry-config", "{}", ""},
		"the certificates of manager": {"manager-ca", "certificate", "certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := fake.NewFakeClient()
			file := filepath.Join(t.TempDir(), "file")
			g.Expect(os.WriteFile(file, []byte(test.content), 0o600)).To(Succeed())

			operator := &Config{}
			g.Expect(operator.Set(map[string]string{test.flag: file})).To(BeEmpty())
			g.Expect((&Publisher{Client: c, Namespace: "ns", Config: operator}).Publish(t.Context())).To(Succeed())

			published, err := ReadPublished(t.Context(), c, "ns")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(published.Files[file]).To(Equal(test.want))
		})
	}
}

// A file that changes is published again.
func TestPublishedFileChanges(t *testing.T) {
	g := NewWithT(t)
	c := fake.NewFakeClient()
	file := filepath.Join(t.TempDir(), "ca.crt")
	publisher := &Publisher{Client: c, Namespace: "ns", Config: &Config{RegistryCA: file}}

	for _, content := range []string{"old", "new"} {
		g.Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())
		g.Expect(publisher.Publish(t.Context())).To(Succeed())

		published, err := ReadPublished(t.Context(), c, "ns")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(published.Files).To(HaveKeyWithValue(file, content))
	}
}

func TestLoadErrors(t *testing.T) {
	for flag, value := range map[string]string{
		"registry-ca": "/does/not/exist", "registry-config": "/does/not/exist", "chart-repository": "oci://host/a:v1",
	} {
		g := NewWithT(t)
		c := &Config{}
		g.Expect(c.Set(map[string]string{flag: value})).To(BeEmpty())

		credentials, err := c.Credentials()
		if err == nil {
			_, err = c.Load(os.ReadFile, credentials)
		}

		g.Expect(err).To(MatchError(HavePrefix("--" + flag)))
	}
}

func TestReadPublishedErrors(t *testing.T) {
	g := NewWithT(t)
	configMap := &corev1.ConfigMap{Data: map[string]string{"flags": "["}}
	configMap.Namespace, configMap.Name = "ns", PublishedName

	c := fake.NewFakeClient()
	g.Expect(ReadPublished(t.Context(), c, "ns")).To(BeNil())

	g.Expect(c.Create(t.Context(), configMap)).To(Succeed())
	_, err := ReadPublished(t.Context(), c, "ns")
	g.Expect(err).To(MatchError(ContainSubstring("ConfigMap ns/capstan-configuration")))
}
