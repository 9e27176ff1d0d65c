package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/harness"
	"github.com/capstan-project/capstan/test/testproviders"
)

// gallery has real providers in all states that users see.
type gallery struct {
	*world

	repository                               string
	core, docker, aws, azure, gcp, dependent v1alpha2.Provider
}

// newGallery installs the providers.
func newGallery(ctx context.Context) *gallery {
	GinkgoHelper()

	g := &gallery{repository: testproviders.Folder(GinkgoT()), world: newWorld(ctx)}
	g.start()

	const before = "v1.13.5"

	for _, label := range []string{"cluster-api", "bootstrap-kubeadm", "control-plane-kubeadm", "infrastructure-docker"} {
		g.offer(ctx, harness.Wanted{Label: label, Version: "v1.14.0"})
	}

	g.offer(ctx, harness.Wanted{Label: "infrastructure-azure", Version: "v1.26.0"})
	g.offer(ctx, harness.Wanted{Label: "infrastructure-aws", Version: "v2.11.1", Variables: harness.AWSVariables})

	g.core = g.install(ctx, g.repository, harness.Wanted{Label: "cluster-api", Version: before})
	Eventually(g.read(ctx, g.core)).Should(beReady(before))

	for _, label := range []string{"bootstrap-kubeadm", "control-plane-kubeadm"} {
		p := g.install(ctx, g.repository, harness.Wanted{Label: label, Version: before})
		Eventually(g.read(ctx, p)).Should(beReady(before))
	}

	g.docker = g.install(ctx, g.repository, harness.Wanted{Label: "infrastructure-docker", Version: before})
	g.azure = g.install(ctx, g.repository, harness.Wanted{Label: "infrastructure-azure", Version: "v1.25.1"})
	g.aws = g.install(ctx, g.repository, harness.Wanted{
		Label: "infrastructure-aws", Version: "v2.10.3", Variables: harness.AWSVariables,
	})

	for p, version := range map[v1alpha2.Provider]string{g.docker: before, g.azure: "v1.25.1", g.aws: "v2.10.3"} {
		Eventually(g.read(ctx, p)).Should(beReady(version))
	}

	return g
}

// offer makes a version available.
func (g *gallery) offer(ctx context.Context, wanted harness.Wanted) {
	GinkgoHelper()

	release, err := harness.Load(ctx, g.repository, wanted)
	Expect(err).NotTo(HaveOccurred())
	Expect(release.Prepare(ctx, g.client)).To(Succeed())
}

// wait installs a provider without its variables, and one that depends on it.
func (g *gallery) wait(ctx context.Context) {
	GinkgoHelper()

	g.gcp = g.install(ctx, g.repository, harness.Wanted{Label: "infrastructure-gcp", Version: "v1.12.0"})
	Eventually(g.read(ctx, g.gcp)).Should(notBeReady(v1alpha2.MissingVariablesReason, "GCP_B64ENCODED_CREDENTIALS"))

	release, err := harness.Load(ctx, g.repository, harness.Wanted{Label: "addon-helm", Version: "v0.6.4"})
	Expect(err).NotTo(HaveOccurred())
	Expect(release.Prepare(ctx, g.client)).To(Succeed())

	g.dependent = release.Resource()
	g.dependent.GetSpec().DependsOn = []string{"infrastructure-gcp"}
	Expect(g.client.Create(ctx, g.dependent)).To(Succeed())
	Eventually(g.read(ctx, g.dependent)).Should(notBeReady(v1alpha2.WaitingForDependenciesReason))
}

// The pictures of the documentation are those of this scenario.
var _ = Describe("The status page with real providers", Ordered, func() {
	var (
		g    *gallery
		page statusPage
		t    *tab
	)

	BeforeAll(func(ctx SpecContext) {
		g = newGallery(ctx)
		page = openStatusPage(ctx, newCommandLine(g.world))
		t = openTab(context.WithoutCancel(ctx), page.url) // for all specs
		g.wait(ctx)
	})

	It("follows an upgrade, one that is rolled back, and drift", func(ctx SpecContext) {
		t.show(page.url, "light", 3000) // all cards, because only the text of visible ones is rendered
		Eventually(t.text).WithArguments("#groups").Should(ContainSubstring("v1.14.0 available"))
		t.evaluate(`window.same = true`)

		update(ctx, g.world, g.aws, func(p v1alpha2.Provider) { p.GetSpec().Version = "v2.11.1" })
		Eventually(t.text).WithArguments(card(g.aws)).Should(And(ContainSubstring("v2.11.1"), ContainSubstring("Ready")))

		update(ctx, g.world, g.docker, func(p v1alpha2.Provider) {
			retries := int32(0)
			p.GetSpec().Version = "v1.14.0"
			p.GetSpec().Release = &v1alpha2.ReleaseSpec{Timeout: &metav1.Duration{Duration: 5 * time.Second}, Retries: &retries}
			p.GetSpec().Deployment = &v1alpha2.DeploymentSpec{NodeSelector: map[string]string{"pool": "management"}}
		})
		Eventually(t.text).WithArguments(card(g.docker)).Should(And(
			ContainSubstring("v1.13.5"), ContainSubstring("wants v1.14.0"), ContainSubstring("v1.14.0 failed: not healthy")))
		Eventually(t.text).WithArguments("#group-failing").Should(ContainSubstring("infrastructure-docker"))

		update(ctx, g.world, g.azure, func(p v1alpha2.Provider) {
			p.GetSpec().Release = &v1alpha2.ReleaseSpec{Drift: v1alpha2.DriftWarn}
		})
		Eventually(g.read(ctx, g.azure)).Should(
			Satisfy(func(p v1alpha2.Provider) bool { return p.GetStatus().ObservedGeneration == p.GetGeneration() }))

		manager := &appsv1.Deployment{ObjectMeta: named(g.azure.GetNamespace(), "capz-controller-manager")}
		scaled := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":2}}`))
		Expect(g.client.Patch(ctx, manager, scaled)).To(Succeed())
		Eventually(t.text).WithArguments(card(g.azure)).Should(ContainSubstring("objects differ"))

		Expect(t.evaluate(`window.same`)).To(BeTrue(), "the page was not loaded again")
		Expect(t.evaluate(storedInBrowser)).To(BeZero())
	})

	It("shows each page", func(ctx SpecContext) {
		for _, scheme := range []string{"light", "dark"} {
			t.show(page.url, scheme, 1080)
			Eventually(t.text).WithArguments("#group-failing").Should(And(
				ContainSubstring("infrastructure-docker"), ContainSubstring("infrastructure-gcp")))
			t.picture("ui-overview-" + scheme)
		}

		t.show(page.url+providerPath(g.docker), "light", 1080)
		Eventually(t.text).WithArguments("#history").Should(ContainSubstring("Revision 2"))
		t.picture("ui-provider")

		t.show(page.url+providerPath(g.aws)+"/compare?from=1&to=2", "light", 800)
		Eventually(t.text).WithArguments("#changes").Should(
			ContainSubstring("Deployment infrastructure-aws-system/capa-controller-manager"))
		t.picture("ui-compare")

		t.show(page.url+"plan", "light", 800)
		Eventually(t.text).WithArguments("#plans").Should(And(
			ContainSubstring("v1.14.0"), ContainSubstring("capstan upgrade apply --dry-run")))
		Eventually(t.text).WithArguments("#sources").ShouldNot(ContainSubstring("being asked"))
		t.picture("ui-plan")

		t.show(page.url+providerPath(g.core)+"/upgrade?to=v1.14.0", "light", 800)
		Eventually(t.text).WithArguments("#changes").Should(And(
			ContainSubstring("clusters.cluster.x-k8s.io"),
			ContainSubstring("Deployment cluster-api-system/capi-controller-manager would be changed")))
		t.picture("ui-upgrade")

		t.expectClean()
	})
})

// card returns the selector of a provider's card on the overview.
func card(p v1alpha2.Provider) string {
	return `[id='` + string(p.ProviderType()) + "/" + p.GetNamespace() + "/" + p.GetName() + `']`
}

// storedInBrowser is how much a page has stored.
const storedInBrowser = `localStorage.length + sessionStorage.length + document.cookie.length`
