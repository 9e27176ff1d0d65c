package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("A crash of the operator", Ordered, func() {
	var w *world

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx)
	})

	// The operator is killed at random times, so that many runs cover all of them. Each run covers the
	// whole duration of an install.
	It("at any time of an install leaves one healthy release after a restart", func(ctx SpecContext) {
		const crashes, step = 6, 60 * time.Millisecond
		for i := range crashes {
			t := newTiny(fmt.Sprintf("crash-%d", i), "v1.0.0")

			p := t.resource()
			for _, o := range []client.Object{t.namespace(), t.configMap(), p} {
				Expect(w.client.Create(ctx, o)).To(Succeed())
			}

			moment := time.Duration(i)*step + rand.N(step)
			killAfter(ctx, w, moment)
			w.start()

			By(fmt.Sprintf("killed %s after the resource was created", moment))
			Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
			history := w.helm(ctx, "helm", "history", "infrastructure-"+t.name, "-n", t.name)
			Expect(history).NotTo(BeEmpty())
			Expect(history[len(history)-1]).To(HaveField("Status", "deployed"))
			Expect(history).To(
				HaveEach(HaveField("Status", BeElementOf("deployed", "failed", "superseded"))), "nothing is left pending",
			)
		}
	})
})

// killAfter kills the operator after a delay. This scenario is about time, so it has to wait.
func killAfter(ctx context.Context, w *world, moment time.Duration) {
	GinkgoHelper()

	select {
	case <-ctx.Done():
	case <-time.After(moment):
	}

	Expect(w.operator.Kill()).To(Succeed())
}
