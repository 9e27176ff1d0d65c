package operatorconfig

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capstan-project/capstan/controllers"
)

// deployment returns a Deployment of the operator as the chart creates it.
func deployment(namespace string, args ...string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace,
		Name:      "capstan",
		Labels:    map[string]string{"app.kubernetes.io/name": "capstan"},
	}}
	d.Spec.Template.Spec.Containers = []corev1.Container{
		{Name: "sidecar", Args: []string{"--image-registry=sidecar.example.com"}},
		{Name: "operator", Args: args},
	}

	return d
}

// mount adds a volume to a Deployment.
func mount(d *appsv1.Deployment, m corev1.VolumeMount, source corev1.VolumeSource) {
	pod := &d.Spec.Template.Spec
	pod.Containers[1].VolumeMounts = append(pod.Containers[1].VolumeMounts, m)
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: m.Name, VolumeSource: source})
}

func read(t *testing.T, namespace string, objects ...client.Object) (*Config, string, error) {
	t.Helper()

	folder := t.TempDir()
	c, err := Read(t.Context(), fake.NewClientBuilder().WithObjects(objects...).Build(), namespace, folder)

	return c, folder, err
}

func TestReadArguments(t *testing.T) {
	for name, args := range map[string][]string{
		"with equals signs": {
			"--concurrency=4", "--image-registry=mirror:5000", "--chart-repository=oci://mirror:5000/charts",
			"--upgrade-crds=true",
		},
		"with spaces": {
			"--upgrade-crds", "--image-registry", "mirror:5000", "--chart-repository", "oci://mirror:5000/charts",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			config, _, err := read(t, "", deployment("capstan-system", args...))
			g.Expect(err).NotTo(HaveOccurred())

			config.Controllers = controllers.Options{} // the defaults of other flags
			g.Expect(*config).To(Equal(Config{
				ImageRegistry:   "mirror:5000",
				ChartRepository: "oci://mirror:5000/charts",
			}))
		})
	}
}

func TestReadDeploymentNotFound(t *testing.T) {
	g := NewWithT(t)

	_, _, err := read(t, "")
	g.Expect(err).To(BeAssignableToTypeOf(&NotFoundError{}))
	g.Expect(err).To(MatchError("there is no Deployment with the label app.kubernetes.io/name=capstan in the cluster"))

	_, _, err = read(t, "elsewhere", deployment("capstan-system"))
	g.Expect(err).To(MatchError("there is no Deployment with the label app.kubernetes.io/name=capstan in namespace " +
		"elsewhere"))
}

func TestReadSeveralDeployments(t *testing.T) {
	g := NewWithT(t)
	one := deployment("one", "--image-registry=first")
	two := deployment("two", "--image-registry=second")

	_, _, err := read(t, "", one, two)
	g.Expect(err).To(BeAssignableToTypeOf(&AmbiguousError{}))
	g.Expect(err).To(MatchError("several Deployments have the label app.kubernetes.io/name=capstan: one/capstan, " +
		"two/capstan"))

	config, _, err := read(t, "two", one, two)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.ImageRegistry).To(Equal("second"))
}

func TestReadFiles(t *testing.T) {
	g := NewWithT(t)
	d := deployment(
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
	config, folder, err := read(
		t,
		"",
		d,
		&corev1.Secret{ObjectMeta: meta("login"), Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte("{}")}},
		&corev1.ConfigMap{ObjectMeta: meta("ca"), Data: map[string]string{"ca.crt": "certificate"}},
		&corev1.ConfigMap{ObjectMeta: meta("clusterctl"), Data: map[string]string{"clusterctl.yaml": "providers: []"}},
	)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Warnings).To(BeEmpty())
	g.Expect(config.Managers.ImagePullSecrets).To(Equal([]string{"one", "two"}))
	g.Expect(config.Managers.HTTPSProxy).To(Equal("http://proxy:3128"))

	for file, content := range map[string]string{
		config.RegistryConfig: "{}",
		config.RegistryCA:     "certificate",
		config.Managers.CA:    "certificate",
		config.ConfigFile:     "providers: []",
	} {
		g.Expect(filepath.Dir(file)).To(Equal(folder))
		g.Expect(os.ReadFile(file)).To(BeEquivalentTo(content))
	}
}

func TestReadMissingFiles(t *testing.T) {
	g := NewWithT(t)
	d := deployment("capstan-system", "--registry-config=/etc/registry/config.json", "--registry-ca=/etc/ca.crt")
	mount(d, corev1.VolumeMount{Name: "login", MountPath: "/etc/registry"}, corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: "login"},
	})

	config, _, err := read(t, "", d)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.RegistryConfig).To(BeEmpty())
	g.Expect(config.RegistryCA).To(BeEmpty())
	g.Expect(config.ConfigFile).To(BeEmpty(), "the default file is optional")
	g.Expect(config.Warnings).To(ConsistOf(
		And(HavePrefix("the operator's --registry-config is left out: "), ContainSubstring(`"login" not found`)),
		"the operator's --registry-ca is left out: the file /etc/ca.crt is in no Secret or ConfigMap that the operator "+
			"mounts",
	))
}
