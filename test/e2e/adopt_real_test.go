package e2e

import (
	"context"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/testproviders"
)

var _ = Describe("capstan adopt takes real providers with clusters over", Ordered, func() {
	var (
		w       *world
		cli     commandLine
		config  string
		cluster *unstructured.Unstructured
		before  map[string]string
	)

	labels := []string{
		"cluster-api", "bootstrap-kubeadm", "control-plane-kubeadm", "infrastructure-docker", "infrastructure-aws",
	}

	BeforeAll(func(ctx SpecContext) {
		repository := onlyNightly()

		w = newWorld()
		cli = newCommandLine(w)
		w.createOperatorDeployment(ctx)

		// Nothing answers the webhooks that clusterctl installs, so there is a cluster before.
		w.createCRDs(ctx, repository, harness.Wanted{Label: "cluster-api", Version: "v1.13.5"})

		cluster = &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"paused": true}}}
		cluster.SetGroupVersionKind(schema.GroupVersionKind{
			Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Cluster",
		})
		cluster.SetNamespace("default")
		cluster.SetName("berlin")
		Eventually(func() error { return w.client.Create(ctx, cluster) }).Should(Succeed())

		clusterctl := newClusterctl(ctx, w, repository, labels...)
		variables := []string{
			"AWS_B64ENCODED_CREDENTIALS=" + harness.AWSVariables["AWS_B64ENCODED_CREDENTIALS"], "CLUSTER_TOPOLOGY=true",
		}
		config = withVariables(clusterctl.config, variables)
		clusterctl.run(ctx, variables, "init", "--core=cluster-api:v1.13.5", "--bootstrap=kubeadm:v1.13.5",
			"--control-plane=kubeadm:v1.13.5", "--infrastructure=docker:v1.13.5,aws:v2.10.3")
		w.start("--config=" + config)

		for _, label := range labels {
			Eventually(w.managerOf(ctx, label)).Should(HaveField("Status.AvailableReplicas", BeNumerically("==", 1)))
		}

		before = w.identities(ctx)
	})

	// expectCluster checks that the cluster is the one that was created.
	expectCluster := func(ctx context.Context) {
		GinkgoHelper()

		live := cluster.DeepCopy()
		Expect(w.client.Get(ctx, client.ObjectKeyFromObject(cluster), live)).To(Succeed())
		Expect(live.GetUID()).To(Equal(cluster.GetUID()))
		Expect(live.GetGeneration()).To(Equal(cluster.GetGeneration()))
		Expect(live.Object["spec"]).To(Equal(cluster.Object["spec"]))
	}

	It("keeps all objects and pods", func(ctx SpecContext) {
		out := cli.succeed(ctx, "adopt", "--config", config)
		Expect(strings.Count(out, "  no changes; ")).To(Equal(len(labels)), out)
		Expect(w.identities(ctx)).To(Equal(before))
		expectCluster(ctx)
	})

	It("upgrades them afterwards", func(ctx SpecContext) {
		Expect(cli.succeed(ctx, "upgrade", "apply", "infrastructure-aws:v2.11.1", "bootstrap-kubeadm:v1.14.0")).To(And(
			ContainSubstring("/aws: v2.11.1 is healthy ("),
			ContainSubstring("/kubeadm: v1.14.0 is healthy (")))
		expectCluster(ctx)
	})
})

// onlyNightly skips the container unless `make real-upgrades` runs it. It returns the folder of real providers.
func onlyNightly() string {
	GinkgoHelper()

	if os.Getenv("REAL_UPGRADES") == "" {
		Skip("REAL_UPGRADES is not set: upgrades of real providers take minutes")
	}

	return testproviders.Folder(GinkgoT())
}

// createCRDs creates the CRDs of a provider as clusterctl does, and waits until they are served.
func (w *world) createCRDs(ctx context.Context, repository string, wanted harness.Wanted) {
	GinkgoHelper()

	release, err := harness.Load(ctx, repository, wanted)
	Expect(err).NotTo(HaveOccurred())

	objects, err := utilyaml.ToUnstructured(release.Bundle.Components)
	Expect(err).NotTo(HaveOccurred())

	for i := range objects {
		o := &objects[i]
		if o.GetKind() != "CustomResourceDefinition" {
			continue
		}

		o.SetLabels(map[string]string{
			v1alpha2.ClusterctlLabel: "", v1alpha2.ClusterctlProviderLabel: wanted.Label,
		})
		Expect(w.client.Create(ctx, o, client.FieldOwner("clusterctl"))).To(Succeed())
	}
}
