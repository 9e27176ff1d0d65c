package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/harness"
)

var _ = Describe("A provider with dependencies", func() {
	create := func(ctx context.Context, w *world, name string, dependsOn ...string) *v1alpha2.InfrastructureProvider {
		GinkgoHelper()

		t := newTiny(name, "v1.0.0")
		p := t.resource()
		p.Spec.DependsOn = dependsOn

		Expect(w.client.Create(ctx, t.namespace())).To(Succeed())
		Expect(w.client.Create(ctx, t.configMap())).To(Succeed())
		Expect(w.client.Create(ctx, p)).To(Succeed())

		return p
	}

	It("is installed once they are ready, and never if it depends on itself", func(ctx SpecContext) {
		w := sharedWorld(ctx)

		dependent := create(ctx, w, "dependent", "infrastructure-dependency")
		Eventually(w.read(ctx, dependent)).Should(failPreflight(v1alpha2.WaitingForDependenciesReason,
			"infrastructure-dependency, whose resource does not exist"))

		dependency := create(ctx, w, "dependency", "infrastructure-dependent")
		Eventually(w.read(ctx, dependency)).Should(failPreflight(v1alpha2.DependencyCycleReason,
			"infrastructure-dependency depends on infrastructure-dependent depends on infrastructure-dependency"))
		Eventually(w.read(ctx, dependent)).Should(failPreflight(v1alpha2.DependencyCycleReason))

		update(ctx, w, dependency, func(p v1alpha2.Provider) { p.GetSpec().DependsOn = nil })
		Eventually(w.read(ctx, dependency)).Should(beReady("v1.0.0"))
		Eventually(w.read(ctx, dependent)).WithTimeout(soon).Should(beReady("v1.0.0"))
	})

	It("depends on itself if core depends on it and it waits for core", func(ctx SpecContext) {
		w := sharedWorld(ctx)
		w.withoutCore(ctx)

		release := must(harness.Load(ctx, samples, harness.Wanted{Label: "cluster-api"}))
		Expect(release.Prepare(ctx, w.client)).To(Succeed())

		core := release.Resource()
		core.GetSpec().DependsOn = []string{"infrastructure-circular"}
		Expect(w.client.Create(ctx, core)).To(Succeed())
		circular := create(ctx, w, "circular")

		Eventually(w.read(ctx, core)).Should(failPreflight(v1alpha2.DependencyCycleReason,
			"cluster-api depends on infrastructure-circular depends on cluster-api"))

		update(ctx, w, core, func(p v1alpha2.Provider) { p.GetSpec().DependsOn = nil })
		Eventually(w.read(ctx, core)).Should(beReady("v1.0.0"))
		Eventually(w.read(ctx, circular)).Should(beReady("v1.0.0"))
	})
})
