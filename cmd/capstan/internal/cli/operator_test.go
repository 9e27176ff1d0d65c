package cli

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/controllers"
)

// published returns the ConfigMap that an operator with flags publishes.
func published(t *testing.T, namespace string, args ...string) *corev1.ConfigMap {
	t.Helper()
	g := NewWithT(t)

	config := &controllers.Config{}
	flags := pflag.NewFlagSet("operator", pflag.ContinueOnError)
	config.BindFlags(flags)
	g.Expect(flags.Parse(args)).To(Succeed())

	c := fake.NewFakeClient()
	p := &controllers.Publisher{Client: c, Namespace: namespace, Version: "v1.2.3", Config: config}
	g.Expect(p.Publish(t.Context())).To(Succeed())

	configMap := &corev1.ConfigMap{}
	name := client.ObjectKey{Namespace: namespace, Name: controllers.PublishedName}
	g.Expect(c.Get(t.Context(), name, configMap)).To(Succeed())
	configMap.ResourceVersion = ""

	return configMap
}

func readOperator(t *testing.T, namespace string, objects ...client.Object) (*OperatorConfig, error) {
	t.Helper()

	return readOperatorConfig(t.Context(), fake.NewClientBuilder().WithObjects(objects...).Build(), namespace)
}

func TestReadOperatorConfig(t *testing.T) {
	g := NewWithT(t)
	flags := published(t, "capstan-system", "--concurrency=7", "--image-registry=mirror:5000",
		"--chart-repository=oci://mirror:5000/charts", "--watch-namespaces=a,b", "--remote-interval=1h")

	config, err := readOperator(t, "", operator("capstan-system"), flags)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Warnings).To(BeEmpty())
	g.Expect(config.Operator).To(Equal(ProgramVersion{"v1.2.3", chartgen.Version}))
	g.Expect(config.Options.Concurrency).To(Equal(7))
	g.Expect(config.Options.ImageRegistry).To(Equal("mirror:5000"))
	g.Expect(config.Options.RemoteInterval).To(Equal(time.Hour))
	g.Expect(config.ChartRepository).To(Equal("oci://mirror:5000/charts"))
	g.Expect(config.WatchNamespaces).To(Equal([]string{"a", "b"}))
}

func TestReadUnpublishedConfig(t *testing.T) {
	empty := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "capstan-system", Name: controllers.PublishedName}}

	for name, objects := range map[string][]client.Object{"none": nil, "the chart's": {empty}} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			config, err := readOperator(t, "", append(objects, operator("capstan-system"))...)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(config.Options.ClusterctlInventory).To(BeTrue(), "the default")
			g.Expect(config.Warnings).To(ConsistOf(ContainSubstring(
				"has not published its configuration in ConfigMap capstan-system/capstan-configuration, so its defaults are used")))
		})
	}
}

// A flag of a newer operator is named, because this program cannot honour it.
func TestReadUnknownFlags(t *testing.T) {
	g := NewWithT(t)
	flags := published(t, "capstan-system")
	flags.Data["flags"] += "future-flag: \"true\"\nanother: \"1\"\n"

	config, err := readOperator(t, "", operator("capstan-system"), flags)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Warnings).To(ConsistOf("the operator has flags that this program does not know and leaves out: " +
		"--another, --future-flag; use a program of the operator's version"))
}

func TestReadWithoutOperator(t *testing.T) {
	g := NewWithT(t)

	_, err := readOperator(t, "")
	g.Expect(err).To(BeAssignableToTypeOf(&OperatorError{}))
	g.Expect(err).To(MatchError("there is no Deployment with the label app.kubernetes.io/name=capstan in the cluster"))

	_, err = readOperator(t, "elsewhere", operator("capstan-system"))
	g.Expect(err).To(MatchError("there is no Deployment with the label app.kubernetes.io/name=capstan in namespace " +
		"elsewhere"))
}

func TestReadSeveralOperators(t *testing.T) {
	g := NewWithT(t)
	one, two := operator("one"), operator("two")

	_, err := readOperator(t, "", one, two)
	g.Expect(err).To(BeAssignableToTypeOf(&OperatorError{}))
	g.Expect(err).To(MatchError("several Deployments have the label app.kubernetes.io/name=capstan: one/capstan, " +
		"two/capstan"))

	config, err := readOperator(t, "two", one, two,
		published(t, "one", "--image-registry=first"), published(t, "two", "--image-registry=second"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Options.ImageRegistry).To(Equal("second"))
}

// write writes a file and returns its path.
func write(t *testing.T, content string) string {
	t.Helper()

	path := filepath.Join(t.TempDir(), "file")
	NewWithT(t).Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())

	return path
}

// Published files are read as the operator reads them; others are left out, and named in one line.
func TestReadFiles(t *testing.T) {
	g := NewWithT(t)
	images := write(t, "images: {all: {tag: v1}}")
	keys := write(t, "key")
	flags := published(t, "capstan-system", "--chart-repository-verify-keys="+keys, "--config="+images,
		"--manager-ca=/etc/absent.crt", "--registry-ca=/etc/absent.crt", "--registry-config=/etc/config.json",
		"--variables-from-environment=TOKEN,OTHER")

	g.Expect(os.Remove(keys)).To(Succeed(), "it is in the operator's Pod")
	g.Expect(os.Remove(images)).To(Succeed())

	given, options, cluster, warnings := planner(t, nil, operator("capstan-system"), flags)
	p, err := given.Planner(t.Context(), options, cluster)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(warnings()).To(Equal("Warning: not known here, and left out: the operator's --registry-ca, " +
		"--manager-ca, variables TOKEN, OTHER where they are not installed yet\n"))
	g.Expect(p.planner.Sources.Registry.Read(keys)).To(BeEquivalentTo("key"))
	g.Expect(p.planner.Sources.ImageOverrides()).To(Equal("all:\n  tag: v1\n"))
}

// TestGivenFiles: nothing is missing of the operator's files if flags replace them.
func TestGivenFiles(t *testing.T) {
	g := NewWithT(t)
	flags := published(t, "capstan-system", "--registry-ca=/etc/absent.crt", "--config=/etc/absent.yaml")
	server := httptest.NewTLSServer(nil)
	t.Cleanup(server.Close)

	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	given, options, cluster, warnings := planner(t, []string{
		"--registry-ca", write(t, string(ca)), "--config", write(t, "images: {all: {tag: mine}}"),
	}, operator("capstan-system"), flags)

	p, err := given.Planner(t.Context(), options, cluster)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(warnings()).To(BeEmpty())
	g.Expect(p.planner.Sources.Registry.CA).To(Equal(ca))
	g.Expect(p.planner.Sources.ImageOverrides()).To(Equal("all:\n  tag: mine\n"))
}

// Credentials are those of the user: docker's, and tokens of clusterctl's configuration. The providers and images of
// that count only if nothing is known of the operator.
func TestUsersCredentials(t *testing.T) {
	const host = "registry.example.com"

	login := func(user string) string {
		return fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, host, base64.StdEncoding.EncodeToString([]byte(user+":pw")))
	}
	docker, home := t.TempDir(), t.TempDir()
	t.Setenv("DOCKER_CONFIG", docker)
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", home)
	NewWithT(t).Expect(os.WriteFile(filepath.Join(docker, "config.json"), []byte(login("docker")), 0o600)).To(Succeed())
	NewWithT(t).Expect(os.Mkdir(filepath.Join(home, "cluster-api"), 0o700)).To(Succeed())
	NewWithT(t).Expect(os.WriteFile(filepath.Join(home, "cluster-api", "clusterctl.yaml"),
		[]byte("MY_TOKEN: mine\nimages: {all: {tag: mine}}"), 0o600)).To(Succeed())

	for name, test := range map[string]struct {
		args         []string
		flags        *corev1.ConfigMap
		user, images string
	}{
		"docker's": {nil, published(t, "capstan-system", "--registry-config=/etc/config.json"), "docker", ""},
		"given":    {[]string{"--registry-config", write(t, login("given"))}, published(t, "capstan-system"), "given", ""},
		"nothing is known of the operator": {
			nil, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "capstan-system", Name: "other"}}, "docker",
			"all:\n  tag: mine\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			given, options, cluster, _ := planner(t, test.args, operator("capstan-system"), test.flags)

			p, err := given.Planner(t.Context(), options, cluster)
			g.Expect(err).NotTo(HaveOccurred())

			found, err := p.planner.Sources.Registry.Credentials(t.Context(), host)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found.Username).To(Equal(test.user))
			g.Expect(p.planner.Sources.ImageOverrides()).To(Equal(test.images))

			known, err := p.planner.Sources.Catalog()
			g.Expect(err).NotTo(HaveOccurred())

			token, _ := known.Variable("MY_TOKEN")
			g.Expect(token).To(Equal("mine"))
		})
	}
}
