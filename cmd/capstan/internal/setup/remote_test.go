package setup

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/clitest"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/harness"
)

// TestRemoteProvidersAreNotLocal: what resources install in another cluster is neither here, nor what is here.
func TestRemoteProvidersAreNotLocal(t *testing.T) {
	g := NewWithT(t)
	clitest.WithoutConfiguration(t)

	b := bedtest.StartAPIServer(t, harness.OwnCRDs()...)

	c, err := harness.NewClient(b.Config())
	g.Expect(err).NotTo(HaveOccurred())

	samples, err := filepath.Abs("../../../../test/data/providers")
	g.Expect(err).NotTo(HaveOccurred())

	config := filepath.Join(t.TempDir(), "clusterctl.yaml")
	text := "providers:\n"

	for label, file := range map[string]string{
		"cluster-api": "core", "bootstrap-kubeadm": "bootstrap", "control-plane-kubeadm": "control-plane",
		"infrastructure-docker": "infrastructure",
	} {
		kind, name := v1alpha2.ParseLabel(label)
		text += fmt.Sprintf("- {name: %s, type: %s, url: %q}\n", name, kind,
			"file://"+filepath.Join(samples, label, "latest", file+"-components.yaml"))
	}

	g.Expect(os.WriteFile(config, []byte(text), 0o600)).To(Succeed())

	remote := func(p v1alpha2.Provider) v1alpha2.Provider {
		p.GetSpec().KubeConfig = &v1alpha2.KubeConfig{}
		p.GetSpec().KubeConfig.SecretRef.Name = "kubeconfig"

		return p
	}
	named := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}

	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "berlin"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "capd-system"}},
		remote(&v1alpha2.CoreProvider{ObjectMeta: named("berlin", "cluster-api")}),
		remote(&v1alpha2.InfrastructureProvider{ObjectMeta: named("berlin", "docker")}),
	} {
		g.Expect(c.Create(t.Context(), o)).To(Succeed())
	}

	plan := func() (string, error) {
		out, _, err := clitest.Run(t.Context(), NewCommand, "--infrastructure", "docker", "--cert-manager", "none",
			"--config", config, "--dry-run", "--kubeconfig", b.Kubeconfig())

		return out, err
	}

	out, err := plan()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(And(
		MatchRegexp(`(?m)^cluster-api: v1.0.0`), MatchRegexp(`(?m)^infrastructure-docker: v1.1.0`),
		Not(ContainSubstring("exists")),
	))

	// The resource for this cluster would have the name of another one.
	taken := remote(&v1alpha2.InfrastructureProvider{ObjectMeta: named("capd-system", "docker")})
	g.Expect(c.Create(t.Context(), taken)).To(Succeed())

	_, err = plan()
	g.Expect(err).To(MatchError("infrastructure-docker: InfrastructureProvider capd-system/docker exists for another " +
		"cluster (spec.kubeConfig); for this one, create a resource in another namespace"))

	// Neither does a resource for another cluster describe what should be adopted here.
	installed := &v1alpha2.InfrastructureProvider{ObjectMeta: named("capd-system", "docker")}
	_, err = newAdoption(t.Context(), nil, installed, []v1alpha2.Provider{taken})
	g.Expect(err).To(MatchError(ContainSubstring("exists for another cluster")))
}
