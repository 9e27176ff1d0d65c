package fetch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/controllers/access"
)

// newPolicy returns the policy of flags.
func newPolicy(t *testing.T, flags ...string) *Policy {
	t.Helper()

	p := &Policy{}
	set := pflag.NewFlagSet("operator", pflag.ContinueOnError)
	p.BindFlags(set)
	NewWithT(t).Expect(set.Parse(flags)).To(Succeed())
	NewWithT(t).Expect(p.Parse("https://10.96.0.1")).To(Succeed())

	return p
}

func TestPolicy(t *testing.T) {
	const hosts = "--allowed-source-hosts=*.bank.example,ghcr.io"

	const signed = "--require-signatures=ghcr.io/capi,*.bank.example"

	verified := &v1alpha2.Verification{}

	for name, c := range map[string]struct {
		flag    string
		config  v1alpha2.FetchConfiguration
		message string
	}{
		"any host":          {"", v1alpha2.FetchConfiguration{HTTP: "https://mirror.example.com/x"}, ""},
		"a listed host":     {hosts, v1alpha2.FetchConfiguration{HTTP: "https://Mirror.bank.example:8443/x"}, ""},
		"a listed registry": {hosts, v1alpha2.FetchConfiguration{OCI: "ghcr.io/x/y"}, ""},
		"another host": {
			hosts, v1alpha2.FetchConfiguration{URL: "https://mirror.example.com/x.yaml"},
			"the source https://mirror.example.com/x.yaml is not allowed: its host is not one of *.bank.example, ghcr.io, " +
				"which the operator's flag --allowed-source-hosts lists; use one of these",
		},
		"another registry": {
			hosts, v1alpha2.FetchConfiguration{OCI: "oci://quay.io/x/y"}, "the source oci://quay.io/x/y is not allowed",
		},
		"another registry's image": {hosts, v1alpha2.FetchConfiguration{Image: "quay.io/x/y"}, "--allowed-source-hosts"},
		"the catalog's host":       {hosts, v1alpha2.FetchConfiguration{}, "https://github.com/"},
		"http": {
			"", v1alpha2.FetchConfiguration{HTTP: "http://mirror.example.com/x"},
			"it does not use TLS; use https, or allow it with the operator's flag --allow-http-sources",
		},
		"a registry without TLS": {"", v1alpha2.FetchConfiguration{OCI: "http://r.example.com/x"}, "--allow-http-sources"},
		"http that is allowed": {
			"--allow-http-sources", v1alpha2.FetchConfiguration{HTTP: "http://mirror.example.com/x"}, "",
		},
		"a special address": {
			"", v1alpha2.FetchConfiguration{HTTP: "https://169.254.169.254/x"}, "169.254.169.254 is a link-local address",
		},
		"a special address of a registry": {
			"", v1alpha2.FetchConfiguration{OCI: "[::1]:5000/x"}, "::1 is a loopback address",
		},
		"a special address that is allowed": {
			"--allowed-source-addresses=127.0.0.0/8", v1alpha2.FetchConfiguration{HTTP: "https://127.0.0.1/x"}, "",
		},
		"without a signature": {
			signed, v1alpha2.FetchConfiguration{OCI: "ghcr.io/capi/aws"},
			"the source ghcr.io/capi/aws is not allowed without a signature, which the operator's flag --require-signatures " +
				"requires; set spec.fetchConfig.verify",
		},
		"an image without a signature": {
			signed, v1alpha2.FetchConfiguration{Image: "r.bank.example:5000/x"}, "--require-signatures",
		},
		"with verification":    {signed, v1alpha2.FetchConfiguration{OCI: "ghcr.io/capi/aws", Verify: verified}, ""},
		"another path":         {signed, v1alpha2.FetchConfiguration{OCI: "ghcr.io/others/aws"}, ""},
		"a path that is alike": {signed, v1alpha2.FetchConfiguration{OCI: "ghcr.io/capitals/aws"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			var flags []string
			if c.flag != "" {
				flags = append(flags, c.flag)
			}

			r := &Resolver{
				Readers: &access.Readers{}, Registry: &Registry{}, Catalog: CatalogFile(DefaultConfigFile),
				Policy: newPolicy(t, flags...),
			}

			_, err := r.Source(provider("docker", fetching(c.config)))
			if c.message == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}

			g.Expect(err).To(HaveField("Reason", v1alpha2.FetchConfigValidationErrorReason))
			g.Expect(err).To(MatchError(ContainSubstring(c.message)))
		})
	}
}

func TestPolicyForProxies(t *testing.T) {
	for name, c := range map[string]struct{ flag, secret, message string }{
		"any proxy":      {"--allowed-source-hosts=", "elsewhere", ""},
		"a listed proxy": {"--allowed-source-hosts=*.bank.example,ghcr.io", "inside", ""},
		"another proxy": {
			"--allowed-source-hosts=*.bank.example,ghcr.io", "elsewhere", "the proxy proxy.example.com:3128 of the Secret of " +
				"spec.fetchConfig.secretRef is not allowed: it is not one of *.bank.example, ghcr.io",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := newRegistryResolver(t)
			r.Policy = newPolicy(t, c.flag)
			r.Readers = &access.Readers{APIReader: newReader(map[string]map[string]string{
				"inside":    {"proxy": "http://me:hush@proxy.bank.example:3128"},
				"elsewhere": {"proxy": "http://me:hush@proxy.example.com:3128"},
			})}
			in := inputsOf(t, r, provider("x", fetching(v1alpha2.FetchConfiguration{
				OCI: "ghcr.io/x", SecretRef: &v1alpha2.LocalSecretReference{Name: c.secret},
			})))

			_, web := in.webOptions(nil)(t.Context(), source.Server{Host: "ghcr.io", TLS: true})
			_, registry := in.registryOptions(t.Context(), oci.Reference{Registry: "ghcr.io", Repository: "x"})

			for _, err := range []error{web, registry} {
				if c.message == "" {
					g.Expect(err).NotTo(HaveOccurred())
				} else {
					g.Expect(err).To(MatchError(And(ContainSubstring(c.message), Not(ContainSubstring("hush")))))
				}
			}
		})
	}
}

func TestPolicyForRegistriesOfTheCatalog(t *testing.T) {
	config := filepath.Join(t.TempDir(), "clusterctl.yaml")
	NewWithT(t).Expect(os.WriteFile(config, []byte(`
providers:
- {name: artifact, type: InfrastructureProvider, url: "oci://registry.bank.example/capi/artifact"}
- {name: image, type: InfrastructureProvider, url: "image://registry.bank.example/capi/image"}
- {name: plain, type: InfrastructureProvider, url: "oci://http://registry.bank.example/capi/plain"}
- {name: elsewhere, type: InfrastructureProvider, url: "oci://ghcr.io/capi/elsewhere"}
- {name: broken, type: InfrastructureProvider, url: "oci://ghcr.io"}
`), 0o600)).To(Succeed())

	for name, c := range map[string]struct{ flag, message string }{
		"artifact":         {"--allowed-source-hosts=*.bank.example", ""},
		"image":            {"--allowed-source-hosts=*.bank.example", ""},
		"elsewhere":        {"--allowed-source-hosts=*.bank.example", "its host is not one of *.bank.example"},
		"plain":            {"--allowed-source-hosts=*.bank.example", "it does not use TLS"},
		"broken":           {"--allowed-source-hosts=*", "is not an OCI reference"},
		"artifact, signed": {"--require-signatures=registry.bank.example/capi", "is not allowed without a signature"},
		"image, signed":    {"--require-signatures=registry.bank.example/capi", "is not allowed without a signature"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := &Resolver{
				Readers: &access.Readers{}, Registry: &Registry{}, Catalog: CatalogFile(config), Policy: newPolicy(t, c.flag),
			}
			name, _, _ := strings.Cut(name, ",")

			_, err := r.Source(provider(name, v1alpha2.ProviderSpec{}))
			if c.message == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(c.message)))
			}
		})
	}
}

func TestPolicyFlags(t *testing.T) {
	NewWithT(t).Expect(newPolicy(t).Guard.APIServers).To(HaveExactElements("10.96.0.1:443"))

	for _, flag := range []string{
		"--allowed-source-hosts=https://a", "--allowed-source-hosts=[", "--require-signatures=oci://a",
		"--allowed-source-addresses=127.0.0.1",
	} {
		g := NewWithT(t)
		p := &Policy{}
		set := pflag.NewFlagSet("operator", pflag.ContinueOnError)
		p.BindFlags(set)
		g.Expect(set.Parse([]string{flag})).To(Succeed())
		g.Expect(p.Parse()).To(MatchError(HavePrefix("--")), flag)
	}
}
