package fetch

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/controllers/access"
)

const registryHost = "registry.example.com"

// login returns a docker configuration for a host.
func login(host, user string) string {
	return fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, host, base64.StdEncoding.EncodeToString([]byte(user+":pw")))
}

// newRegistryResolver returns a resolver with Secrets of many kinds, and with credentials of the
// operator's own.
func newRegistryResolver(t *testing.T) *Resolver {
	t.Helper()

	config := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(config, []byte(login(registryHost, "operator")), 0o600); err != nil {
		t.Fatal(err)
	}

	credentials, err := transport.DockerConfigFile(config)
	if err != nil {
		t.Fatal(err)
	}

	registry, err := NewRegistry("", credentials, nil)
	if err != nil {
		t.Fatal(err)
	}

	reader := newReader(
		map[string]map[string]string{
			"basic":     {"username": "basic", "password": "pw"},
			"docker":    {".dockerconfigjson": login(registryHost, "docker")},
			"elsewhere": {".dockerconfigjson": login("other.example.com", "elsewhere")},
			"authority": {"ca.crt": "CA"},
			"broken":    {".dockerconfigjson": "{"},
			"variables": {"OCI_USERNAME": "variables", "OCI_PASSWORD": "pw"},
			"pull":      {".dockerconfigjson": login(registryHost, "pull")},
			"not-keys":  {"cosign.pub": "x"},
		},
		&corev1.ServiceAccount{
			ObjectMeta:       metav1.ObjectMeta{Namespace: "default", Name: "puller"},
			ImagePullSecrets: []corev1.LocalObjectReference{{Name: "absent"}, {Name: "broken"}, {Name: "pull"}},
		},
	)

	return &Resolver{
		Readers:  &access.Readers{APIReader: reader},
		Registry: registry,
		Catalog:  CatalogFile(DefaultConfigFile),
	}
}

func TestRegistryCredentials(t *testing.T) {
	r := newRegistryResolver(t)

	for name, c := range map[string]struct{ secretRef, variables, account, want string }{
		"user name and password":                 {"basic", "variables", "puller", "basic"},
		"a docker configuration":                 {"docker", "variables", "puller", "docker"},
		"the variables, as cluster-api-operator": {"", "variables", "puller", "variables"},
		"the pull secrets of the account":        {"", "", "puller", "pull"},
		"variables that do not exist":            {"", "absent", "puller", "pull"},
		"the operator's own":                     {"", "", "", "operator"},
		"a Secret for another host":              {"elsewhere", "", "", ""},
		"not the operator's for an account":      {"", "", "other", ""},
		"not the operator's with another CA":     {"authority", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			config := v1alpha2.FetchConfiguration{OCI: registryHost + "/x"}
			if c.secretRef != "" {
				config.SecretRef = &v1alpha2.LocalSecretReference{Name: c.secretRef}
			}

			options, err := inputsOf(t, r, provider("x", v1alpha2.ProviderSpec{
				SecretName:         c.variables,
				ServiceAccountName: c.account,
				FetchConfig:        &config,
			})).registryOptions(t.Context(), oci.Reference{Registry: registryHost})
			g.Expect(err).NotTo(HaveOccurred())

			found, err := options.Credentials(t.Context(), registryHost)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found.Username).To(Equal(c.want))

			others, err := options.Credentials(t.Context(), "evil.example.com")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(others.Username).To(BeEmpty())
		})
	}
}

func TestCatalogCredentials(t *testing.T) {
	r := newRegistryResolver(t)

	for name, c := range map[string]struct {
		variables, account string
		plain              bool
		want               string
	}{
		"the operator's own":                      {want: "operator"},
		"the operator's for an account":           {account: "puller", want: "operator"},
		"the variables, as cluster-api-operator":  {variables: "variables", want: "variables"},
		"variables that do not exist":             {variables: "absent", want: "operator"},
		"none without TLS, which is then refused": {plain: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			options := inputsOf(t, r, provider("x", v1alpha2.ProviderSpec{
				SecretName: c.variables, ServiceAccountName: c.account,
			})).catalogOptions(oci.Reference{Registry: registryHost, PlainHTTP: c.plain})

			found, err := options.Credentials(t.Context(), registryHost)
			g.Expect(found.Username).To(Equal(c.want))

			if c.plain {
				g.Expect(err).To(MatchError(ContainSubstring("not sent to registry.example.com over plain HTTP")))
				return
			}

			g.Expect(err).NotTo(HaveOccurred())

			others, err := options.Credentials(t.Context(), "evil.example.com")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(others.Username).To(BeEmpty())
		})
	}
}

func TestRegistryCredentialsWithoutTLS(t *testing.T) {
	r := newRegistryResolver(t)
	plain := oci.Reference{Registry: registryHost, PlainHTTP: true}

	for name, c := range map[string]struct{ secretRef, message string }{
		"of the Secret":       {"basic", "credentials are not sent to registry.example.com over plain HTTP"},
		"of the operator":     {"", ""},
		"for another host":    {"elsewhere", ""},
		"without credentials": {"authority", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			config := v1alpha2.FetchConfiguration{OCI: plain.String() + "/x"}
			if c.secretRef != "" {
				config.SecretRef = &v1alpha2.LocalSecretReference{Name: c.secretRef}
			}

			options, err := inputsOf(t, r, provider("x", fetching(config))).registryOptions(t.Context(), plain)
			g.Expect(err).NotTo(HaveOccurred())

			found, err := options.Credentials(t.Context(), registryHost)
			g.Expect(found.Username).To(BeEmpty())

			if c.message == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(c.message)))
			}
		})
	}
}

func TestUnusableRegistrySecrets(t *testing.T) {
	r := newRegistryResolver(t)
	verifiedBy := func(secret string) *v1alpha2.Verification {
		return &v1alpha2.Verification{SecretRef: v1alpha2.LocalSecretReference{Name: secret}}
	}

	for name, c := range map[string]struct {
		config  v1alpha2.FetchConfiguration
		message string
	}{
		"a Secret that does not exist": {
			v1alpha2.FetchConfiguration{
				OCI:       registryHost + "/x",
				SecretRef: &v1alpha2.LocalSecretReference{Name: "absent"},
			},
			"Secret default/absent with the source's credentials does not exist; create it, or correct " +
				"spec.fetchConfig.secretRef",
		},
		"certificates that are damaged": {
			v1alpha2.FetchConfiguration{
				OCI:       registryHost + "/x",
				SecretRef: &v1alpha2.LocalSecretReference{Name: "authority"},
			},
			"the source's Secret: ca.crt holds no certificate",
		},
		"a Secret that is damaged": {
			v1alpha2.FetchConfiguration{
				Image:     registryHost + "/x",
				SecretRef: &v1alpha2.LocalSecretReference{Name: "broken"},
			},
			"Secret default/broken: key .dockerconfigjson",
		},
		"keys that do not exist": {
			v1alpha2.FetchConfiguration{OCI: registryHost + "/x", Verify: verifiedBy("absent")},
			"Secret default/absent with the keys for verification does not exist; create it, or correct " +
				"spec.fetchConfig.verify.secretRef",
		},
		"keys that are damaged": {
			v1alpha2.FetchConfiguration{OCI: registryHost + "/x", Verify: verifiedBy("not-keys")},
			"cosign.pub is not a public key",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			found, err := r.Source(provider("x", fetching(c.config)))
			g.Expect(err).NotTo(HaveOccurred(), "creating a source reads no Secret")

			_, err = found.Fetch(t.Context(), source.Version{Name: "v1.0.0"})
			g.Expect(err).To(MatchError(ContainSubstring(c.message)))
		})
	}
}

func TestNewRegistry(t *testing.T) {
	_, err := NewRegistry("oci://registry.example.com/a:v1", nil, nil)
	NewWithT(t).Expect(err).To(MatchError(HavePrefix("--chart-repository")))
}
