package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

var _ = Describe("A provider with dependencies", func() {
	It("is installed once they are ready, and never if it depends on itself", func(ctx SpecContext) {
		w := readyWorld(ctx)
		create := func(name string, dependsOn ...string) *v1alpha2.InfrastructureProvider {
			GinkgoHelper()

			t := newTiny(name, "v1.0.0")
			p := t.resource()
			p.Spec.DependsOn = dependsOn

			Expect(w.client.Create(ctx, t.namespace())).To(Succeed())
			Expect(w.client.Create(ctx, t.configMap())).To(Succeed())
			Expect(w.client.Create(ctx, p)).To(Succeed())

			return p
		}

		dependent := create("dependent", "infrastructure-dependency")
		Eventually(w.read(ctx, dependent)).Should(failPreflight(v1alpha2.WaitingForDependenciesReason,
			"infrastructure-dependency, which has no resource"))

		dependency := create("dependency", "infrastructure-dependent")
		Eventually(w.read(ctx, dependency)).Should(failPreflight(v1alpha2.DependencyCycleReason,
			"infrastructure-dependency depends on infrastructure-dependent depends on infrastructure-dependency"))
		Eventually(w.read(ctx, dependent)).Should(failPreflight(v1alpha2.DependencyCycleReason))

		update(ctx, w, dependency, func(p v1alpha2.Provider) { p.GetSpec().DependsOn = nil })
		Eventually(w.read(ctx, dependency)).Should(beReady("v1.0.0"))
		Eventually(w.read(ctx, dependent)).WithTimeout(soon).Should(beReady("v1.0.0"))
	})
})
