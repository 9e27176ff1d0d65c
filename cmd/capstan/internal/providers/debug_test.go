package providers

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/controllers"
)

// TestDebugHidesValues checks that the archive has the structure of a resource, and no value that may be a credential.
func TestDebugHidesValues(t *testing.T) {
	g := NewWithT(t)

	const secret = "s3cret"

	env := []corev1.EnvVar{{Name: "TOKEN", Value: secret}, {
		Name: "KEY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "key"}},
	}}
	containers := []v1alpha2.ContainerSpec{{Name: "manager", Env: env}}
	p := &v1alpha2.InfrastructureProvider{
		ObjectMeta: metav1.ObjectMeta{
			Name: "aws", Namespace: "capa-system",
			Annotations:   map[string]string{corev1.LastAppliedConfigAnnotation: secret, "kept": "yes"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
		},
		ProviderFields: v1alpha2.ProviderFields{Spec: v1alpha2.ProviderSpec{
			Version:         "v1.0.0",
			FetchConfig:     &v1alpha2.FetchConfiguration{URL: "https://user:" + secret + "@example.com/aws?token=" + secret},
			Variables:       map[string]string{"AWS_KEY": secret},
			Values:          &runtime.RawExtension{Raw: []byte(`{"list":[{"token":"` + secret + `"},7]}`)},
			ManifestPatches: []string{"data: {token: " + secret + "}"},
			Deployment:      &v1alpha2.DeploymentSpec{Containers: containers},
			AdditionalDeployments: map[string]v1alpha2.AdditionalDeployment{
				"webhook": {Deployment: &v1alpha2.DeploymentSpec{Containers: containers}},
			},
		}},
	}

	content, err := withoutValues(p)
	g.Expect(err).NotTo(HaveOccurred())

	text, err := yaml.Marshal(content)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(text)).NotTo(Or(ContainSubstring(secret), ContainSubstring("managedFields"), ContainSubstring("7")))

	for _, kept := range []string{
		"version: v1.0.0", "url: https://example.com/aws", "AWS_KEY: (hidden)", "- token: (hidden)", "name: TOKEN",
		"key: key", `kept: "yes"`,
	} {
		g.Expect(string(text)).To(ContainSubstring(kept))
	}

	g.Expect(p.Spec.Variables).To(HaveKeyWithValue("AWS_KEY", secret), "the resource itself is not changed")
}

// TestDebugConfiguration checks that the archive has the operator's flags, without credentials, or why it has none.
func TestDebugConfiguration(t *testing.T) {
	g := NewWithT(t)
	api := fake.NewFakeClient()
	c := &collector{cluster: &cli.Cluster{Client: api}}

	c.collectConfiguration(t.Context(), "capstan-system")
	g.Expect(c.archive.files).To(BeEmpty())
	g.Expect(c.archive.missing).To(ConsistOf(
		"the operator's configuration: it has published none in namespace capstan-system"))

	config := &controllers.Config{}
	_, err := config.Set(map[string]string{"chart-repository": "https://me:s3cret@example.com/charts", "concurrency": "7"})
	g.Expect(err).NotTo(HaveOccurred())

	publisher := &controllers.Publisher{Client: api, Namespace: "capstan-system", Version: "v1.0.0", Config: config}
	g.Expect(publisher.Publish(t.Context())).To(Succeed())

	c.collectConfiguration(t.Context(), "capstan-system")
	g.Expect(c.archive.files).To(HaveLen(1))
	g.Expect(c.archive.files[0].name).To(Equal("operator/configuration.yaml"))
	g.Expect(string(c.archive.files[0].content)).To(And(
		ContainSubstring("Version: v1.0.0"), ContainSubstring("chart-repository: https://example.com/charts"),
		ContainSubstring(`concurrency: "7"`), Not(ContainSubstring("s3cret"))))
}

// TestDebugArchive checks what is written, and that a file is not replaced.
func TestDebugArchive(t *testing.T) {
	g := NewWithT(t)
	destination := filepath.Join(t.TempDir(), "found.tar.gz")

	a := &archive{}
	a.add("versions.yaml", []byte("capstan: v1\n"))
	a.lacks("the operator's log", errors.New("forbidden\x1b[2J"))
	g.Expect(a.write(destination, time.Now())).To(Succeed())

	info, err := os.Stat(destination)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))

	g.Expect(readArchive(t, destination)).To(Equal(map[string]string{
		"found/versions.yaml":    "capstan: v1\n",
		"found/not-included.txt": "the operator's log: forbidden [2J\n",
	}))

	g.Expect(a.write(destination, time.Now())).To(MatchError(
		destination + " exists; set --destination to another file"))
}

func readArchive(t *testing.T, name string) map[string]string {
	t.Helper()

	g := NewWithT(t)
	file, err := os.Open(name)
	g.Expect(err).NotTo(HaveOccurred())

	defer file.Close()

	uncompressed, err := gzip.NewReader(file)
	g.Expect(err).NotTo(HaveOccurred())

	found := map[string]string{}

	for r := tar.NewReader(uncompressed); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return found
		}

		g.Expect(err).NotTo(HaveOccurred())

		content, err := io.ReadAll(r)
		g.Expect(err).NotTo(HaveOccurred())

		found[header.Name] = string(content)
	}
}

// TestDebugKeepsTheEndOfLogs checks the limit of a log.
func TestDebugKeepsTheEndOfLogs(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "abc": "abc", "abcd": "abcd", "abcde": "bcde", "abcdefgh": "efgh", "abcdefghi": "fghi",
	} {
		t.Run(text, func(t *testing.T) {
			g := NewWithT(t)
			last, err := lastBytes(strings.NewReader(text), 4)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(last)).To(Equal(want))
		})
	}
}
