package providers

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
	"github.com/capstan-project/capstan/controllers"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/harness"
)

// newHub returns a cluster with core and docker, and with those of two remote clusters: Berlin has a core of another
// contract, Hamburg one of the same.
func newHub(t *testing.T) (c client.Client, kubeconfig string) {
	t.Helper()

	g := NewWithT(t)
	clitest.WithoutConfiguration(t)

	b := bedtest.StartAPIServer(t, harness.OwnCRDs()...)

	c, err := harness.NewClient(b.Config())
	g.Expect(err).NotTo(HaveOccurred())

	samples, err := filepath.Abs("../../../../test/data/providers")
	g.Expect(err).NotTo(HaveOccurred())

	config := filepath.Join(t.TempDir(), "clusterctl.yaml")
	g.Expect(os.WriteFile(config, []byte(fmt.Sprintf("providers:\n"+
		"- {name: cluster-api, type: CoreProvider, url: 'file://%s/cluster-api/latest/core-components.yaml'}\n"+
		"- {name: docker, type: InfrastructureProvider, "+
		"url: 'file://%[1]s/infrastructure-docker/latest/infrastructure-components.yaml'}\n", samples)), 0o600)).To(Succeed())
	g.Expect(c.Create(t.Context(), operatorDeployment())).To(Succeed())

	operator := &controllers.Config{}
	g.Expect(operator.Set(map[string]string{"config": config})).To(BeEmpty())
	publisher := &controllers.Publisher{Client: c, Namespace: "default", Config: operator}
	g.Expect(publisher.Publish(t.Context())).To(Succeed())

	for namespace, contract := range map[string]string{"local": "v1beta2", "berlin": "v1beta1", "hamburg": "v1beta2"} {
		g.Expect(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())

		for _, p := range []v1alpha2.Provider{
			&v1alpha2.CoreProvider{ObjectMeta: metav1.ObjectMeta{Name: "cluster-api", Namespace: namespace}},
			&v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Name: "docker", Namespace: namespace}},
		} {
			p.GetSpec().Version = "v1.0.0"

			if namespace != "local" {
				p.GetSpec().KubeConfig = &v1alpha2.KubeConfig{}
				p.GetSpec().KubeConfig.SecretRef.Name = "kubeconfig"
			}

			g.Expect(c.Create(t.Context(), p)).To(Succeed())

			p.GetStatus().InstalledVersion = new("v1.0.0")
			p.GetStatus().Contract = &contract
			g.Expect(c.Status().Update(t.Context(), p)).To(Succeed())
		}
	}

	return c, b.Kubeconfig()
}

// TestUpgradesOfSeveralClusters: each cluster has plans of its own, and what one of them cannot have changes no other.
func TestUpgradesOfSeveralClusters(t *testing.T) {
	_, kubeconfig := newHub(t)
	upgrade := func(args ...string) (out, log string, err error) {
		return clitest.Run(t.Context(), NewUpgradeCommand, append(args, "--kubeconfig", kubeconfig)...)
	}

	t.Run("plan", func(t *testing.T) {
		g := NewWithT(t)
		out, log, err := upgrade("plan")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(log).To(BeEmpty())
		clitest.Golden(t, "plan-clusters.txt", out)
	})

	t.Run("apply a contract", func(t *testing.T) {
		g := NewWithT(t)
		out, log, err := upgrade("apply", "--contract", "v1beta2", "--dry-run")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(Equal("InfrastructureProvider hamburg/docker: would be upgraded to v1.1.0\n" +
			"InfrastructureProvider local/docker: would be upgraded to v1.1.0\n"))
		g.Expect(log).To(Equal(
			"Warning: no version of core in the cluster of Secret berlin/kubeconfig has the contract v1beta2\n"))
	})

	t.Run("apply a contract that no core has", func(t *testing.T) {
		g := NewWithT(t)
		_, log, err := upgrade("apply", "--contract", "v1beta3", "--dry-run")
		g.Expect(err).To(MatchError(HavePrefix("no version of core has the contract v1beta3")))
		g.Expect(log).To(BeEmpty(), "the error says it")
	})

	t.Run("apply a version", func(t *testing.T) {
		_, _, err := upgrade("apply", "--version", "v1.1.0", "--dry-run")
		NewWithT(t).Expect(err).To(MatchError("the upgrade in the cluster of Secret berlin/kubeconfig is not possible: the " +
			"contract of infrastructure-docker would not work with contract v1beta1 of core"))
	})

	t.Run("apply in a namespace", func(t *testing.T) {
		g := NewWithT(t)
		out, _, err := upgrade("apply", "--version", "v1.1.0", "--dry-run", "--namespace", "hamburg")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(Equal("InfrastructureProvider hamburg/docker: would be upgraded to v1.1.0\n"))
	})

	t.Run("apply a named version", func(t *testing.T) {
		g := NewWithT(t)
		_, _, err := upgrade("apply", "infrastructure-docker:v1.1.0", "--dry-run")
		g.Expect(err).To(MatchError(ContainSubstring("infrastructure-docker is ambiguous")))

		out, _, err := upgrade("apply", "infrastructure-docker:v1.1.0", "--dry-run", "--namespace", "berlin")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).To(Equal("InfrastructureProvider berlin/docker: would be upgraded to v1.1.0\n"))
	})
}
