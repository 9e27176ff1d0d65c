package providers

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/clitest"
	"github.com/capstan-project/capstan/controllers"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/harness"
)

// TestPlanWithoutFetchConfig plans for a provider whose source is only known from the operator's
// configuration. No operator runs: its Deployment is all that the commands need.
func TestPlanWithoutFetchConfig(t *testing.T) {
	g := NewWithT(t)
	clitest.WithoutConfiguration(t)

	b := bedtest.StartAPIServer(t, harness.OwnCRDs()...)

	c, err := harness.NewClient(b.Config())
	g.Expect(err).NotTo(HaveOccurred())

	config := filepath.Join(t.TempDir(), "clusterctl.yaml")
	content := clitest.Configuration(t, "../../../../test/data/providers")
	g.Expect(os.WriteFile(config, []byte(content), 0o600)).To(Succeed())
	g.Expect(c.Create(t.Context(), operatorDeployment())).To(Succeed())

	operator := &controllers.Config{}
	g.Expect(operator.Set(map[string]string{"image-registry": "mirror.example.com", "config": config})).To(BeEmpty())
	publisher := &controllers.Publisher{Client: c, Namespace: "default", Config: operator}
	g.Expect(publisher.Publish(t.Context())).To(Succeed())
	g.Expect(os.Remove(config)).To(Succeed(), "it is in the operator's Pod")

	docker := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Name: "docker", Namespace: "default"}}
	docker.Spec.Version = "v1.0.0"
	g.Expect(c.Create(t.Context(), docker)).To(Succeed())

	out, warnings, err := clitest.Run(t.Context(), NewDiffCommand, "docker", "--kubeconfig", b.Kubeconfig())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(warnings).To(BeEmpty())
	g.Expect(out).To(And(
		MatchRegexp(`\+ +image: mirror.example.com/capi/capd-manager:v1.0.0`),
		MatchRegexp(`(?m)^infrastructure-docker v1\.0\.0: \d+ objects to create, 0 to change, 0 to delete; \d+ CRDs to `+
			`create`),
	))

	docker.Status.InstalledVersion = new("v1.0.0")
	docker.Status.Contract = new("v1beta2")
	g.Expect(c.Status().Update(t.Context(), docker)).To(Succeed())

	out, warnings, err = clitest.Run(t.Context(), NewUpgradeCommand, "plan", "--kubeconfig", b.Kubeconfig())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(warnings).To(BeEmpty())
	g.Expect(out).To(MatchRegexp(`(?m)^infrastructure-docker +v1\.0\.0 +v1\.1\.0 +`))

	before := docker.ResourceVersion
	_, _, err = clitest.Run(t.Context(), NewUpgradeCommand, "apply", "docker:v3.0.0", "--kubeconfig", b.Kubeconfig())
	g.Expect(err).To(MatchError("nothing was changed: InfrastructureProvider default/docker: version v3.0.0 is not " +
		"available; the source has v1.1.0, v1.0.0"))
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(docker), docker)).To(Succeed())
	g.Expect(docker.ResourceVersion).To(Equal(before))

	// Flags take precedence.
	out, _, err = clitest.Run(
		t.Context(),
		NewDiffCommand,
		"docker",
		"--kubeconfig",
		b.Kubeconfig(),
		"--image-registry",
		"other.example.com",
	)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(MatchRegexp(`\+ +image: other.example.com/capi/capd-manager:v1.0.0`))
}

// operatorDeployment returns the Deployment of an operator.
func operatorDeployment() *appsv1.Deployment {
	labels := map[string]string{"app.kubernetes.io/name": "capstan"}
	pod := corev1.PodSpec{Containers: []corev1.Container{{Name: "operator", Image: "operator"}}}

	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "capstan", Namespace: "default", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		},
	}
}
