package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/harness"
)

var _ = Describe("ConfigMaps with the labels of a provider", func() {
	It("are used only if the operator's flag allows it", func(ctx SpecContext) {
		w := newWorld(ctx)
		w.start()
		w.install(ctx, samples, harness.Wanted{Label: "cluster-api"})

		labeled := newTiny("labeled", "v1.0.0")
		cm := labeled.configMap()
		cm.Labels = map[string]string{
			v1alpha2.ConfigMapTypeLabel:    "infrastructure",
			v1alpha2.ConfigMapNameLabel:    labeled.name,
			v1alpha2.ConfigMapVersionLabel: labeled.version,
		}
		p := labeled.resource()
		p.Spec.FetchConfig = nil

		Expect(w.client.Create(ctx, labeled.namespace())).To(Succeed())
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beStalled(
			v1alpha2.UnknownProviderReason, "neither in clusterctl's list of providers nor in the operator's configuration"))

		Expect(w.client.Create(ctx, cm)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beStalled(v1alpha2.UnknownProviderReason,
			"ConfigMap v1.0.0 in the namespace holds v1.0.0 of this provider: to use it, set spec.fetchConfig.selector"))

		Expect(w.operator.Stop()).To(Succeed())
		w.start("--use-labeled-configmaps")
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		Expect(p.Spec.FetchConfig).To(BeNil())
		Expect(p.Status.Chart.Source).To(Equal("configmap"))
	})
})
