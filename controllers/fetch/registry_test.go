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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/test/bed"
)

const registryHost = "registry.example.com"

// login is a docker configuration for a host.
func login(host, user string) string {
	return fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, host, base64.StdEncoding.EncodeToString([]byte(user+":pw")))
}

func TestCredentialsForRegistries(t *testing.T) {
	g := NewWithT(t)
	b, err := bed.Start(t.Context(), bed.Options{Nodes: -1, WithoutCertManager: true})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = b.Stop() })

	c, err := client.New(b.Config(), client.Options{})
	g.Expect(err).NotTo(HaveOccurred())

	for name, data := range map[string]map[string]string{
		"basic":     {"username": "basic", "password": "pw"},
		"docker":    {".dockerconfigjson": login(registryHost, "docker")},
		"elsewhere": {".dockerconfigjson": login("other.example.com", "elsewhere")},
		"broken":    {".dockerconfigjson": "{"},
		"variables": {"OCI_USERNAME": "variables", "OCI_PASSWORD": "pw"},
		"pull":      {".dockerconfigjson": login(registryHost, "pull")},
		"not-keys":  {"cosign.pub": "x"},
	} {
		g.Expect(c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, StringData: data})).
			To(Succeed())
	}

	account := &corev1.ServiceAccount{
		ObjectMeta:       metav1.ObjectMeta{Namespace: "default", Name: "puller"},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "absent"}, {Name: "pull"}},
	}
	g.Expect(c.Create(t.Context(), account)).To(Succeed())
	operators := filepath.Join(t.TempDir(), "config.json")
	g.Expect(os.WriteFile(operators, []byte(login(registryHost, "operator")), 0o600)).To(Succeed())
	registry, err := NewRegistry("", operators, "")
	g.Expect(err).NotTo(HaveOccurred())

	r := &Resolver{Reader: c, Registry: registry, Config: &ConfigFile{Path: DefaultConfigFile}}

	for name, test := range map[string]struct {
		secretRef, variables, account, want string
	}{
		"user name and password":               {"basic", "variables", "puller", "basic"},
		"a docker configuration":               {"docker", "variables", "puller", "docker"},
		"cluster-api-operator's, in variables": {"", "variables", "puller", "variables"},
		"the pull secrets of the account":      {"", "", "puller", "pull"},
		"the operator's own":                   {"", "", "", "operator"},
		"one for another host is none":         {"elsewhere", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			fetch := v1alpha2.FetchConfiguration{OCI: registryHost + "/x"}
			if test.secretRef != "" {
				fetch.SecretRef = &v1alpha2.LocalSecretReference{Name: test.secretRef}
			}

			options, err := r.options(
				t.Context(),
				provider(
					"x",
					v1alpha2.ProviderSpec{SecretName: test.variables, ServiceAccountName: test.account, FetchConfig: &fetch},
				),
				registryHost,
			)
			g.Expect(err).NotTo(HaveOccurred())
			found, err := options.Credentials(t.Context(), registryHost)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found.Username).To(Equal(test.want))

			stranger, err := options.Credentials(t.Context(), "evil.example.com")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(stranger.Username).To(BeEmpty())
		})
	}

	for name, test := range map[string]struct {
		fetch   v1alpha2.FetchConfiguration
		message string
	}{
		"a Secret that is not there": {v1alpha2.FetchConfiguration{OCI: registryHost + "/x", SecretRef: &v1alpha2.LocalSecretReference{Name: "absent"}}, "Secret default/absent"},
		"a Secret that is damaged":   {v1alpha2.FetchConfiguration{Image: registryHost + "/x", SecretRef: &v1alpha2.LocalSecretReference{Name: "broken"}}, "Secret default/broken: key .dockerconfigjson"},
		"keys that are none":         {v1alpha2.FetchConfiguration{OCI: registryHost + "/x", Verify: &v1alpha2.Verification{SecretRef: v1alpha2.LocalSecretReference{Name: "not-keys"}}}, "cosign.pub is not a public key"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			from, err := r.Source(provider("x", fetching(test.fetch)))
			g.Expect(err).NotTo(HaveOccurred(), "making a source reads no Secret")
			_, err = from.Fetch(t.Context(), from.(source.Remote).Version("v1.0.0"))
			g.Expect(err).To(MatchError(ContainSubstring(test.message)))
		})
	}
}

func TestWhereProvidersComeFromWithAChartRepository(t *testing.T) {
	g := NewWithT(t)
	registry, err := NewRegistry("oci://registry.example.com/capi/charts", "", "")
	g.Expect(err).NotTo(HaveOccurred())

	r := &Resolver{Registry: registry, Config: &ConfigFile{Path: DefaultConfigFile}}
	origin := func(p v1alpha2.Provider) string {
		from, err := r.Source(p)
		g.Expect(err).NotTo(HaveOccurred())

		return from.(source.Remote).Version("v1.0.0").Origin
	}
	g.Expect(origin(provider("nobodys", v1alpha2.ProviderSpec{}))).
		To(Equal("oci://registry.example.com/capi/charts/infrastructure-nobodys:v1.0.0"))
	g.Expect(origin(provider("aws", v1alpha2.ProviderSpec{}))).To(And(
		HavePrefix("oci://registry.example.com/capi/charts/infrastructure-aws:v1.0.0 or https://github.com/")))
	g.Expect(origin(provider("aws", fetching(v1alpha2.FetchConfiguration{HTTP: "https://mirror/x"})))).
		To(HavePrefix("https://mirror/x/"), "what a resource says comes first")

	for flags, message := range map[[3]string]string{
		{"oci://registry.example.com/a:v1", "", ""}: "--chart-repository",
		{"", "/does/not/exist", ""}:                 "--registry-config",
		{"", "", "/does/not/exist"}:                 "--registry-ca",
	} {
		_, err := NewRegistry(flags[0], flags[1], flags[2])
		g.Expect(err).To(MatchError(HavePrefix(message)))
	}
}
