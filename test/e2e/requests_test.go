package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// request returns a change of a resource that requests a reconcile.
func request(at string) func(v1alpha2.Provider) {
	return func(p v1alpha2.Provider) {
		p.SetAnnotations(map[string]string{v1alpha2.ReconcileRequestAnnotation: at})
	}
}

var _ = Describe("Without a change of the resource", Ordered, func() {
	var w *world

	BeforeAll(func(ctx SpecContext) {
		w = readyWorld(ctx)
	})

	// restart starts the operator with other flags, as an upgrade of the operator does.
	restart := func(flags ...string) {
		GinkgoHelper()
		Expect(w.operator.Stop()).To(Succeed())
		w.start(flags...)
	}

	It("a rollback made with helm stays, whatever the operator is restarted with", func(ctx SpecContext) {
		newer := newTiny("escaped", "v1.1.0")
		p := newTiny("escaped", "v1.0.0").create(ctx, w, unmodified)
		Expect(w.client.Create(ctx, newer.configMap())).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))

		held := beReadyWith(v1alpha2.ExternalChangeReason, "v1.0.0 is healthy", "revision 3 was made by another program",
			"change the annotation reconcile.fluxcd.io/requestedAt or set")

		w.run(ctx, "helm", "rollback", "infrastructure-escaped", "1", "-n", p.Namespace)
		Eventually(w.read(ctx, p)).Should(held)

		restart("--image-registry=mirror.example.com")
		update(ctx, w, p, func(p v1alpha2.Provider) { p.SetLabels(map[string]string{"team": "a"}) })
		Consistently(w.read(ctx, p)).WithTimeout(2 * quietPeriod).Should(held)

		By("requesting a reconcile")
		update(ctx, w, p, request("now"))
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
		Expect(p.Status.Release.Revision).To(Equal(int64(4)))
	})
})
