package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/fakesource"
)

var _ = Describe("A source that the operator must not connect to", Ordered, func() {
	var (
		w      *world
		server *fakesource.Server
	)

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx, "--allow-http-sources", "--allowed-source-addresses=192.0.2.0/24")
		server = &fakesource.Server{}
		Expect(server.Start()).To(Succeed())
		DeferCleanup(func() { _ = server.Stop() })
	})

	// fetching creates the resource of a tiny provider with a source.
	fetching := func(ctx context.Context, name, url string) *v1alpha2.InfrastructureProvider {
		GinkgoHelper()

		t := newTiny(name, "v1.0.0")
		p := t.resource()
		p.Spec.FetchConfig = &v1alpha2.FetchConfiguration{HTTP: url}

		Expect(w.client.Create(ctx, t.namespace())).To(Succeed())
		Expect(w.client.Create(ctx, p)).To(Succeed())

		return p
	}

	It("is refused if it is on the operator's own machine", func(ctx SpecContext) {
		p := fetching(ctx, "inner", server.URL()+"/plain/owner/inner")
		Eventually(w.read(ctx, p)).Should(failPreflight(v1alpha2.FetchConfigValidationErrorReason,
			"127.0.0.1 is a loopback address", "--allowed-source-addresses"))
		Expect(server.Requests("/")).To(BeEmpty())
	})

	It("is refused if it is the API server, whatever is allowed", func(ctx SpecContext) {
		w.restart("--allowed-source-addresses=127.0.0.0/8")

		p := fetching(ctx, "server", w.bed.Config().Host)
		Eventually(w.read(ctx, p)).Should(failPreflight(v1alpha2.FetchConfigValidationErrorReason,
			"127.0.0.1 is the API server's address"))
	})
})
