package chart

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/catalog"
	"github.com/capstan-project/capstan/controllers/metrics"
)

var _ = Describe("The kustomize base", Ordered, func() {
	const folder = root + "/config/default"

	AfterAll(func(ctx SpecContext) {
		run(ctx, "kubectl", "delete", "--ignore-not-found", "-k", folder)
		Eventually(func() bool {
			return admin.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{}) != nil
		}).Should(BeTrue())
	})

	It("can be applied client-side and server-side, and its Deployment becomes available", func(ctx SpecContext) {
		run(ctx, "kubectl", "apply", "-k", folder)
		run(ctx, "kubectl", "apply", "--server-side", "--force-conflicts", "-k", folder)
		Eventually(func(g Gomega) {
			deployment := &appsv1.Deployment{}
			g.Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: release}, deployment)).To(Succeed())
			g.Expect(deployment.Status.AvailableReplicas).To(BeEquivalentTo(2))
		}).Should(Succeed())
	})

	It("makes the API server accept a sample of every kind and every source", func(ctx SpecContext) {
		const samples = root + "/config/samples"

		files, err := filepath.Glob(samples + "/*.yaml")
		Expect(err).NotTo(HaveOccurred())

		clusterctl, err := catalog.Parse(nil)
		Expect(err).NotTo(HaveOccurred())

		kinds, sources := map[string]bool{}, map[string]bool{}

		for _, file := range files {
			s := readSample(file)
			ns := &corev1.Namespace{ObjectMeta: objectName(s.Metadata.Namespace)}
			Expect(client.IgnoreAlreadyExists(admin.Create(ctx, ns))).To(Succeed())

			kinds[s.Kind] = true

			if s.Spec.FetchConfig == nil {
				_, listed := clusterctl.Find(v1alpha2.ProviderType(s.Kind), s.Metadata.Name)
				Expect(listed).To(BeTrue(), "%s is installed as it is: clusterctl lists its source", file)
			}

			for source := range s.Spec.FetchConfig {
				sources[source] = true
			}
		}

		run(ctx, "kubectl", "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", samples)

		for _, t := range v1alpha2.ProviderTypes() {
			Expect(kinds).To(HaveKey(string(t)))
		}

		for _, source := range metrics.Sources() {
			Expect(sources).To(HaveKey(string(source)))
		}
	})
})

// sample has the fields of a sample that the test reads.
type sample struct {
	Kind     string
	Metadata struct{ Namespace, Name string }
	Spec     struct{ FetchConfig map[string]any }
}

func readSample(file string) sample {
	GinkgoHelper()

	data, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())

	var s sample
	Expect(yaml.Unmarshal(data, &s)).To(Succeed())

	return s
}
