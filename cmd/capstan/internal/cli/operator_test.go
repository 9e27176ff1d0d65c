package cli

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/controllers"
	"github.com/capstan-project/capstan/controllers/fetch"
)

// mount adds a volume to a Deployment.
func mount(d *appsv1.Deployment, m corev1.VolumeMount, source corev1.VolumeSource) {
	pod := &d.Spec.Template.Spec
	pod.Containers[1].VolumeMounts = append(pod.Containers[1].VolumeMounts, m)
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: m.Name, VolumeSource: source})
}

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

func readOperator(t *testing.T, namespace string, objects ...client.Object) (*OperatorConfig, string, error) {
	t.Helper()

	folder := t.TempDir()
	c, err := readOperatorConfig(
		t.Context(), fake.NewClientBuilder().WithObjects(objects...).Build(), namespace, folder, controllers.Config{})

	return c, folder, err
}

func TestReadOperatorConfig(t *testing.T) {
	g := NewWithT(t)
	flags := published(t, "capstan-system", "--concurrency=7", "--image-registry=mirror:5000",
		"--chart-repository=oci://mirror:5000/charts", "--watch-namespaces=a,b", "--remote-interval=1h")

	config, _, err := readOperator(t, "", operator("capstan-system"), flags)
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

			config, _, err := readOperator(t, "", append(objects, operator("capstan-system"))...)
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

	config, _, err := readOperator(t, "", operator("capstan-system"), flags)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Warnings).To(ConsistOf("the operator has flags that this program does not know and leaves out: " +
		"--another, --future-flag; use a program of the operator's version"))
}

func TestReadWithoutOperator(t *testing.T) {
	g := NewWithT(t)

	_, _, err := readOperator(t, "")
	g.Expect(err).To(BeAssignableToTypeOf(&NoOperatorError{}))
	g.Expect(err).To(MatchError("there is no Deployment with the label app.kubernetes.io/name=capstan in the cluster"))

	_, _, err = readOperator(t, "elsewhere", operator("capstan-system"))
	g.Expect(err).To(MatchError("there is no Deployment with the label app.kubernetes.io/name=capstan in namespace " +
		"elsewhere"))
}

func TestReadSeveralOperators(t *testing.T) {
	g := NewWithT(t)
	one, two := operator("one"), operator("two")

	_, _, err := readOperator(t, "", one, two)
	g.Expect(err).To(BeAssignableToTypeOf(&AmbiguousOperatorError{}))
	g.Expect(err).To(MatchError("several Deployments have the label app.kubernetes.io/name=capstan: one/capstan, " +
		"two/capstan"))

	config, _, err := readOperator(t, "two", one, two,
		published(t, "one", "--image-registry=first"), published(t, "two", "--image-registry=second"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Options.ImageRegistry).To(Equal("second"))
}

func TestReadFiles(t *testing.T) {
	g := NewWithT(t)
	d := operator("capstan-system")
	flags := published(
		t,
		"capstan-system",
		"--registry-config=/etc/registry/config.json",
		"--registry-ca=/etc/ca.crt",
		"--manager-ca=/etc/ca.crt",
		"--manager-image-pull-secrets=one,two",
		"--manager-https-proxy=http://proxy:3128",
	)

	mount(d, corev1.VolumeMount{Name: "login", MountPath: "/etc/registry/"}, corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{
			SecretName: "login",
			Items:      []corev1.KeyToPath{{Key: corev1.DockerConfigJsonKey, Path: "config.json"}},
		},
	})
	mount(d, corev1.VolumeMount{Name: "ca", MountPath: "/etc/ca.crt", SubPath: "ca.crt"}, corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "ca"}},
	})
	mount(d, corev1.VolumeMount{Name: "config", MountPath: "/config"}, corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{
			ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "clusterctl"}},
		}}},
	})

	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "capstan-system", Name: name} }
	config, folder, err := readOperator(
		t,
		"",
		d,
		flags,
		&corev1.Secret{ObjectMeta: meta("login"), Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte("{}")}},
		&corev1.ConfigMap{ObjectMeta: meta("ca"), Data: map[string]string{"ca.crt": "certificate"}},
		&corev1.ConfigMap{ObjectMeta: meta("clusterctl"), Data: map[string]string{"clusterctl.yaml": "providers: []"}},
	)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Warnings).To(BeEmpty())
	g.Expect(config.Managers.ImagePullSecrets).To(Equal([]string{"one", "two"}))
	g.Expect(config.Managers.HTTPSProxy).To(Equal("http://proxy:3128"))

	for file, content := range map[string]string{
		config.RegistryConfig:     "{}",
		config.RegistryCA:         "certificate",
		config.Managers.CA:        "certificate",
		config.Options.ConfigFile: "providers: []",
	} {
		g.Expect(filepath.Dir(file)).To(Equal(folder))
		g.Expect(os.ReadFile(file)).To(BeEquivalentTo(content))
	}
}

func TestReadMissingFiles(t *testing.T) {
	g := NewWithT(t)
	d := operator("capstan-system")
	flags := published(t, "capstan-system", "--registry-config=/etc/registry/config.json", "--registry-ca=/etc/ca.crt")

	mount(d, corev1.VolumeMount{Name: "login", MountPath: "/etc/registry"}, corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: "login"},
	})

	config, _, err := readOperator(t, "", d, flags)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.RegistryConfig).To(BeEmpty())
	g.Expect(config.RegistryCA).To(BeEmpty())
	g.Expect(config.Options.ConfigFile).To(Equal(fetch.DefaultConfigFile), "it is optional")
	g.Expect(config.Warnings).To(ConsistOf(
		And(HavePrefix("the operator's --registry-config is left out: "), ContainSubstring(`"login" not found`)),
		"the operator's --registry-ca is left out: the file /etc/ca.crt is in no Secret or ConfigMap that the operator "+
			"mounts",
	))
}

// TestGivenFilesAreNotRead: nothing is missing of the operator's files if flags replace them.
func TestGivenFilesAreNotRead(t *testing.T) {
	g := NewWithT(t)
	flags := published(t, "capstan-system", "--registry-config=/etc/registry/config.json", "--registry-ca=/etc/ca.crt")
	c := fake.NewClientBuilder().WithObjects(operator("capstan-system"), flags).Build()
	given := controllers.Config{RegistryConfig: "mine.json", RegistryCA: "mine.crt"}

	config, err := readOperatorConfig(t.Context(), c, "", t.TempDir(), given)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Warnings).To(BeEmpty())
}
