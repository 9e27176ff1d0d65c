package release_test

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

var _ = Describe("A look at a release", func() {
	It("fails if the newest record cannot be read, which is not one without content", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		mustApply(ctx, newEngine("one"), specOf(namespace, "1.0.0", configMap("config", "1")))

		o := &outage{method: http.MethodGet, path: "/secrets/"}
		engine := during(o, lasting)
		look := func() (release.Look, error) {
			return engine.Look(ctx, releaseIn(namespace), &v1alpha2.InfrastructureProvider{}, state.Owner{})
		}

		_, err := look()
		Expect(err).To(MatchError(ContainSubstring("etcdserver: leader changed")))

		o.over()

		found, err := look()
		Expect(err).NotTo(HaveOccurred())
		Expect(found.Record.Keys()).To(HaveLen(1))
	})
})
