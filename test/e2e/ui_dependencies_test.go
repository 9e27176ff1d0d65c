package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/harness"
)

var _ = Describe("The dependencies on the status page", Ordered, func() {
	const jane, john = "oidc:jane", "oidc:john"

	var (
		w     *world
		cli   commandLine
		proxy *signIn
		used  tiny
		held  *v1alpha2.InfrastructureProvider // by an object of a Cluster
		waits *v1alpha2.InfrastructureProvider
		kept  client.Object
	)

	create := func(ctx context.Context, t tiny, dependsOn ...string) *v1alpha2.InfrastructureProvider {
		GinkgoHelper()

		p := t.resource()
		p.Spec.DependsOn = dependsOn

		for _, o := range []client.Object{t.namespace(), t.configMap(), p} {
			Expect(w.client.Create(ctx, o)).To(Succeed())
		}

		return p
	}

	BeforeAll(func(ctx SpecContext) {
		w = newWorld(ctx)
		address := fmt.Sprintf("127.0.0.1:%d", freePort())
		w.start("--ui-bind-address=" + address)
		cli = newCommandLine(w)

		core := w.install(ctx, samples, harness.Wanted{Label: "cluster-api"})
		Eventually(w.read(ctx, core)).Should(beReady("v1.0.0"))

		used = newTiny("used", "v1.0.0")
		held = create(ctx, used)
		Eventually(w.read(ctx, held)).Should(beReady("v1.0.0"))

		waits = create(ctx, newTiny("waits", "v1.0.0"), "infrastructure-used", "addon-missing")
		Eventually(w.read(ctx, waits)).Should(failPreflight(v1alpha2.WaitingForDependenciesReason, "addon-missing"))

		kept = used.object("v1", "kept")
		kept.SetLabels(map[string]string{"cluster.x-k8s.io/cluster-name": "production"})
		Expect(w.client.Create(ctx, kept)).To(Succeed())

		proxy = &signIn{page: &url.URL{Scheme: "https", Host: address}, token: w.tokenOf(ctx, "dependencies-proxy")}
		w.grant(ctx, "dependencies-sign-in", "",
			rbacv1.Subject{Kind: "ServiceAccount", Namespace: "default", Name: "dependencies-proxy"},
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"users"}, Verbs: []string{"impersonate"}})

		providers := rbacv1.PolicyRule{
			APIGroups: []string{v1alpha2.GroupVersion.Group}, Resources: []string{"infrastructureproviders"},
			Verbs: []string{"list"},
		}
		objects := rbacv1.PolicyRule{
			APIGroups: []string{"infrastructure.cluster.x-k8s.io"}, Resources: []string{"*"}, Verbs: []string{"list"},
		}

		w.grant(ctx, "dependencies-jane", "", user(jane), providers)
		w.grant(ctx, "dependencies-jane-objects", "default", user(jane), objects) // not in all namespaces
		w.grant(ctx, "dependencies-john", "", user(john), providers, objects)
	})

	It("shows in a browser what providers wait for and who keeps them, and follows it", func(ctx SpecContext) {
		tab := openTab(ctx, proxy.as(john)+"dependencies")
		Eventually(tab.text).WithArguments("#holders").Should(
			ContainSubstring("default/production has objects of infrastructure-used"))
		Eventually(tab.text).WithArguments("#clusters").Should(And(
			ContainSubstring("Waiting or failing"),
			ContainSubstring("waiting for the providers in spec.dependsOn to become ready: addon-missing"),
			ContainSubstring("In use: 1 object, of Cluster default/production"),
			ContainSubstring("capstan delete --dry-run infrastructure-used -n used"),
		))

		tab.evaluate(`window.same = true`)
		update(ctx, w, waits, func(p v1alpha2.Provider) { p.GetSpec().DependsOn = []string{"infrastructure-used"} })
		Eventually(tab.text).WithArguments("#clusters").ShouldNot(
			Or(ContainSubstring("addon-missing"), ContainSubstring("Waiting or failing")))
		Expect(tab.evaluate(`window.same`)).To(BeTrue(), "the page was not loaded again")
		tab.expectClean()
	})

	It("shows to a limited user only objects that it may list everywhere", func(ctx SpecContext) {
		read := func(user, path string) string {
			_, body := status(ctx, proxy.as(user)+path, http.Header{})
			return body
		}

		Eventually(read).WithArguments(john, providerPath(held)).Should(And(
			ContainSubstring(used.crd()), ContainSubstring("default/kept"), ContainSubstring("default/production"),
			Not(ContainSubstring("You may not list the objects")),
		))
		Expect(read(jane, providerPath(held))).To(And(
			ContainSubstring("You may not list the objects of 1 kind, so there may be more."),
			Not(ContainSubstring("default/kept")), Not(ContainSubstring("production")), Not(ContainSubstring("Nothing:")),
		))
		Eventually(read).WithArguments(jane, "dependencies").Should(And( // what she may list is looked up in the background
			ContainSubstring("infrastructure-used"), ContainSubstring("None are known."),
			ContainSubstring("cluster-api</span> (not found)"), // which she may not list
			Not(ContainSubstring("production")), Not(ContainSubstring("In use")),
		))
	})

	It("is the same on a laptop and in the commands beside it, and writes nothing", func(ctx SpecContext) {
		writes := cli.writes()
		page := openStatusPage(ctx, cli)

		Eventually(page.read).WithArguments(ctx, "dependencies").Should(And(
			ContainSubstring("In use: 1 object, of Cluster default/production"), Not(ContainSubstring("being looked up"))))
		Eventually(page.read).WithArguments(ctx, providerPath(held)).Should(ContainSubstring(used.crd()))
		Expect(cli.succeed(ctx, "status", "waits")).To(ContainSubstring("depends on infrastructure-used"))

		out, _, code := cli.run(ctx, "delete", "--dry-run", "infrastructure-used", "-n", "used")
		Expect(code).To(Equal(1))
		Expect(out).To(ContainSubstring(
			"1 object still exists: 1 " + used.crd() + " (e.g. default/kept) of Cluster default/production"))
		Expect(cli.writes()).To(Equal(writes))
	})

	It("shows a removal that waits, and that nothing blocks it any more", func(ctx SpecContext) {
		page := openStatusPage(ctx, cli)

		Expect(w.client.Delete(ctx, held)).To(Succeed())
		Eventually(page.read).WithArguments(ctx, "dependencies").Should(
			ContainSubstring("1 object still exists: 1 " + used.crd() + " (e.g. default/kept) of Cluster default/production"))
		Expect(page.read(ctx, providerPath(held))).To(ContainSubstring("The removal waits: 1 object still exists"))

		Expect(w.client.Delete(ctx, kept)).To(Succeed())
		Eventually(page.read).WithArguments(ctx, "dependencies").Should(And(
			Not(ContainSubstring(providerPath(held))), Not(ContainSubstring("default/production"))))
	})
})
