package clusters

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/supply/store"
	"github.com/capstan-project/capstan/cmd/capstan/internal/clitest"
	"github.com/capstan-project/capstan/test/bed/bedtest"
	"github.com/capstan-project/capstan/test/harness"
)

func TestManagementCluster(t *testing.T) {
	clitest.WithoutConfiguration(t)
	RegisterFailHandler(Fail)
	RunSpecs(t, "capstan against a management cluster")
}

var _ = Describe("capstan generate cluster with the chart that the operator keeps", Ordered, func() {
	var (
		kubeconfig string
		cluster    client.Client
		provider   *v1alpha2.InfrastructureProvider
		charts     *store.Cluster
		older      *store.Stored // of version v1.0.0
	)

	generated := func(ctx context.Context, arguments ...string) string {
		GinkgoHelper()

		out, warnings, err := generate(ctx, append(arguments, "--kubeconfig", kubeconfig, "--target-namespace", "team")...)
		Expect(err).NotTo(HaveOccurred())
		Expect(warnings).To(BeEmpty())

		return out
	}
	refused := func(ctx context.Context, arguments ...string) Assertion {
		GinkgoHelper()

		out, _, err := generate(ctx, append(arguments, "--kubeconfig", kubeconfig, "--target-namespace", "team")...)
		Expect(out).To(BeEmpty())
		Expect(err).To(HaveOccurred())

		return Expect(err.Error())
	}

	BeforeAll(func(ctx SpecContext) {
		b := bedtest.StartAPIServer(GinkgoT())
		kubeconfig = b.Kubeconfig()

		var err error

		cluster, err = harness.NewClient(b.Config())
		Expect(err).NotTo(HaveOccurred())

		charts = &store.Cluster{Client: cluster}
	}, NodeTimeout(15*time.Minute))

	It("reports what is missing, step by step", func(ctx SpecContext) {
		refused(ctx, "dev").To(HavePrefix("the management cluster knows no InfrastructureProviders; install Capstan there"))

		Expect(harness.InstallCRDs(ctx, cluster)).To(Succeed())
		refused(ctx, "dev").To(HavePrefix("the management cluster has no InfrastructureProvider; create one"))

		provider = &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Name: "sample", Namespace: "default"}}
		Expect(cluster.Create(ctx, provider)).To(Succeed())
		refused(ctx, "dev").To(HavePrefix("InfrastructureProvider default/sample is not installed yet; see its conditions"))
		refused(
			ctx,
			"dev",
			"-i",
			"aws",
		).To(Equal("the management cluster has no InfrastructureProvider aws; there is sample"))

		provider.Status.InstalledVersion = new("v1.0.0")
		Expect(cluster.Status().Update(ctx, provider)).To(Succeed())
		refused(ctx, "dev").To(HavePrefix("InfrastructureProvider default/sample: the cluster keeps no chart of it; "))
	})

	It("reads the installed version unless another is named", func(ctx SpecContext) {
		older = keep(ctx, charts, "v1.0.0", "a")
		provider.Status.StoredCharts = []v1alpha2.StoredChart{
			{Version: "v1.1.0", Digest: keep(ctx, charts, "v1.1.0", "b").Digest},
			{Version: "v1.0.0", Digest: older.Digest},
		}
		Expect(cluster.Status().Update(ctx, provider)).To(Succeed())
		Expect(
			generated(ctx, "dev", "--flavor", "only"),
		).To(Equal(generated(ctx, "dev", "--flavor", "only", "--source", samples, "-i", "sample:v1.0.0")))

		topology := []string{"dev", "--flavor", "topology", "--kubernetes-version", "v1.34.0"}
		Expect(generated(ctx, append(topology, "-i", "sample:v1.1.0")...)).To(And(
			Equal(generated(ctx, append(topology, "--source", samples)...)),
			ContainSubstring("kind: ClusterClass\n"),
		))
		refused(
			ctx,
			"dev",
			"-i",
			"sample:v2.0.0",
		).To(Equal("InfrastructureProvider default/sample: version v2.0.0 is not on offer; there is v1.1.0, v1.0.0"))
	})

	It("only considers providers in --namespace", func(ctx SpecContext) {
		Expect(generated(ctx, "dev", "--flavor", "only", "-n", "default")).To(ContainSubstring("namespace: team"))
		refused(ctx, "dev", "-n", "elsewhere").
			To(HavePrefix("the management cluster has no InfrastructureProvider; create one"))
	})

	It("reads the chart that the status names where one version has several", func(ctx SpecContext) {
		other, err := chart.New(
			chart.Metadata{APIVersion: "v2", Name: "infrastructure-sample", Version: "1.0.0", AppVersion: "v1.0.0"},
			[]chart.File{
				{Name: "cluster-template-only.yaml", Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: other\n")},
			},
		)
		Expect(err).NotTo(HaveOccurred())
		newer, err := charts.Put(
			ctx,
			store.Key{Namespace: "default", Provider: "infrastructure-sample", Version: "v1.0.0", ContentID: "c"},
			other,
		)
		Expect(err).NotTo(HaveOccurred())

		Expect(generated(ctx, "dev", "--flavor", "only")).To(ContainSubstring("name: dev\n"),
			"a chart that the operator has not recorded is ignored")

		provider.Status.StoredCharts = append(provider.Status.StoredCharts,
			v1alpha2.StoredChart{Version: "v1.0.0", Digest: newer.Digest})

		for digest, name := range map[string]string{older.Digest: "dev", newer.Digest: "other"} {
			provider.Status.Chart = &v1alpha2.ChartStatus{Digest: digest}
			Expect(cluster.Status().Update(ctx, provider)).To(Succeed())
			Expect(generated(ctx, "dev", "--flavor", "only")).To(ContainSubstring("name: " + name + "\n"))
		}
	})

	It("leaves out a ClusterClass that the management cluster has", func(ctx SpecContext) {
		serve(ctx, cluster, "cluster.x-k8s.io", "ClusterClass", "clusterclasses")
		serve(ctx, cluster, "infrastructure.cluster.x-k8s.io", "SampleClusterTemplate", "sampleclustertemplates")
		Expect(cluster.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}})).To(Succeed())

		topology := []string{"dev", "-i", "sample:v1.1.0", "--flavor", "topology", "--kubernetes-version", "v1.34.0"}
		Expect(generated(ctx, topology...)).To(ContainSubstring("kind: ClusterClass\n"))

		template := object("infrastructure.cluster.x-k8s.io/v1beta2", "SampleClusterTemplate")
		Expect(cluster.Create(ctx, template)).To(Succeed())
		refused(
			ctx,
			topology...).To(HavePrefix("SampleClusterTemplate team/small is in the management cluster already, but its " +
			"ClusterClass team/small is not; "))

		Expect(cluster.Create(ctx, object("cluster.x-k8s.io/v1beta2", "ClusterClass"))).To(Succeed())
		Expect(generated(ctx, topology...)).NotTo(ContainSubstring("kind: ClusterClass\n"))
		Expect(
			generated(ctx, append(topology, "--source", samples)...),
		).NotTo(ContainSubstring("kind: ClusterClass\n"), "a folder, with a management cluster named")
		refused(
			ctx,
			"dev",
			"-i",
			"sample:v1.1.0",
			"--flavor",
			"foreign-class",
		).To(HavePrefix("ClusterClass team/foreign is neither in the management cluster nor, as " +
			"clusterclass-foreign.yaml, in infrastructure-sample v1.1.0; "))
	})

	It("reports that a stored chart is damaged", func(ctx SpecContext) {
		list := &corev1.ConfigMapList{}
		Expect(cluster.List(ctx, list, client.MatchingLabels{v1alpha2.VersionLabel: "v1.1.0"})).To(Succeed())
		Expect(len(list.Items)).To(BeNumerically(">", 1), "in several ConfigMaps")

		for _, chunk := range list.Items {
			if len(chunk.Annotations) > 0 {
				continue
			}

			Expect(cluster.Delete(ctx, &chunk)).To(Succeed())
			chunk.ResourceVersion = ""
			chunk.BinaryData["chart"][0]++
			Expect(cluster.Create(ctx, &chunk)).To(Succeed())
		}

		refused(
			ctx,
			"dev",
			"-i",
			"sample:v1.1.0",
		).To(MatchRegexp(`^InfrastructureProvider default/sample: ConfigMap default/infrastructure-sample-1\.1\.0-\w+ ` +
			`holds a damaged chart; delete it`))
	})
})

// keep stores the chart of a sample like the operator does. A large file in it makes sure that the
// chart needs several ConfigMaps.
func keep(ctx context.Context, charts *store.Cluster, version, contentID string) *store.Stored {
	GinkgoHelper()

	noise := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	files := []chart.File{{Name: "templates/noise.yaml", Data: noise}}
	folder := filepath.Join(samples, "infrastructure-sample", version)
	entries, err := os.ReadDir(folder)
	Expect(err).NotTo(HaveOccurred())

	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(folder, e.Name()))
		Expect(err).NotTo(HaveOccurred())

		files = append(files, chart.File{Name: e.Name(), Data: data})
	}

	c, err := chart.New(
		chart.Metadata{APIVersion: "v2", Name: "infrastructure-sample", Version: version[1:], AppVersion: version},
		files,
	)
	Expect(err).NotTo(HaveOccurred())
	stored, err := charts.Put(
		ctx,
		store.Key{Namespace: "default", Provider: "infrastructure-sample", Version: version, ContentID: contentID},
		c,
	)
	Expect(err).NotTo(HaveOccurred())

	return stored
}

// serve creates the CRD of a kind without a schema, and waits until the API server serves it.
func serve(ctx context.Context, c client.Client, group, kind, plural string) {
	GinkgoHelper()

	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, Plural: plural},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				{
					Name:    "v1beta2",
					Served:  true,
					Storage: true,
					Schema: &apiextensionsv1.CustomResourceValidation{
						OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"},
					},
				},
			},
		},
	}
	Expect(c.Create(ctx, crd)).To(Succeed())

	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1beta2", Kind: kind + "List"})
	Eventually(func() error { return c.List(ctx, list) }).WithTimeout(time.Minute).Should(Succeed())
}

// object returns an object with the name small in the namespace team.
func object(apiVersion, kind string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace("team")
	o.SetName("small")

	return o
}
