package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A provider of clusterctl that is adopted and upgraded in one step", Ordered, func() {
	var (
		w        *world
		cli      commandLine
		old, new = newTiny("at-once", "v1.0.0"), newTiny("at-once", "v1.1.0")
	)

	BeforeAll(func(ctx SpecContext) {
		w = readyWorld(ctx)
		cli = newCommandLine(ctx, w)

		Expect(w.client.Create(ctx, old.namespace())).To(Succeed())
		w.createComponents(ctx, old, "clusterctl")

		Expect(w.client.Create(ctx, new.configMap())).To(Succeed())

		p := new.resource()
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
	})

	It("is not given back, because that would not undo the upgrade", func(ctx SpecContext) {
		writes := cli.writes()
		cli.fail(ctx, "adopt", "--undo", "at-once").To(Equal(
			"Error: nothing was changed, because infrastructure-at-once cannot be given back: revision 1 of release " +
				"at-once/infrastructure-at-once has adopted v1.0.0 and upgraded it to v1.1.0 in one step; delete the resource " +
				"with the annotation capstan.dev/keep-installed: \"true\" to keep what is installed\n"))
		Expect(cli.writes()).To(Equal(writes))
	})
})
