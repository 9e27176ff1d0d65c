package e2e

import (
	"net/http"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/faults"
)

var _ = Describe("A leader", Ordered, ContinueOnFailure, func() {
	const count = 150 // of ConfigMaps: an upgrade of them takes seconds

	flags := []string{
		"--enable-leader-election", "--leader-election-namespace=default", "--leader-election-lease-duration=4s",
		"--leader-election-renew-deadline=3s", "--leader-election-retry-period=500ms",
	}

	var w *world

	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "capstan.operator.cluster.x-k8s.io",
	}}

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx)
	})

	// The command line would warn the scenarios that follow in this world.
	AfterAll(func(ctx SpecContext) { Expect(w.client.Delete(ctx, lease)).To(Succeed()) })

	It("that was frozen exits, and what it still writes is corrected", func(ctx SpecContext) {
		w.restart(flags...)
		DeferCleanup(func() { w.restart() })

		t := newTiny("frozen-leader", "v1.0.0").withConfigMaps(count)
		p := t.resource()

		for _, o := range []client.Object{
			t.namespace(), t.configMap(),
			newTiny("frozen-leader", "v1.1.0").withConfigMaps(count).configMap(),
			newTiny("frozen-leader", "v1.2.0").withConfigMaps(count).configMap(),
			p,
		} {
			Expect(w.client.Create(ctx, o)).To(Succeed())
		}

		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))

		By("freezing the leader in the middle of an upgrade")
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
		Eventually(func() []string { return w.configMapsOf(ctx, "frozen-leader") }).WithPolling(time.Millisecond).
			Should(ContainElement(HaveSuffix(" v1.1.0")))
		Expect(w.operator.Freeze()).To(Succeed())
		DeferCleanup(func() { _ = w.operator.Thaw() }) // it may have exited
		Expect(w.configMapsOf(ctx, "frozen-leader")).To(ContainElement(HaveSuffix(" v1.0.0")))

		By("finishing with another version")
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.2.0" })
		w.startSecond(flags...) // before, it could finish the upgrade
		Eventually(w.read(ctx, p)).Should(beReady("v1.2.0"))

		Expect(w.operator.Thaw()).To(Succeed())
		Eventually(func() bool { exited, _ := w.operator.Exited(); return exited }).Should(BeTrue())

		// What v1.2.0 does not have, and the frozen leader created after the new one had deleted it, stays.
		Eventually(func() []string {
			return slices.DeleteFunc(w.configMapsOf(ctx, "frozen-leader"), func(configMap string) bool {
				return strings.HasSuffix(configMap, "-v1-1-0 v1.1.0")
			})
		}).Should(And(HaveLen(count), HaveEach(HaveSuffix(" v1.2.0"))))
		Expect(w.helm(ctx, "helm", "history", "infrastructure-frozen-leader", "-n", "frozen-leader")).To(HaveExactElements(
			HaveField("Status", "superseded"),
			And(HaveField("Status", "failed"), HaveField("Description", HavePrefix("Interrupted: "))),
			HaveField("Status", "deployed"),
		))
	})

	// Everything else that it does succeeds, but slowly.
	It("that loses its lease exits in the middle of an upgrade, which another one finishes", func(ctx SpecContext) {
		slow := faults.New(1)
		slow.Slow(func(r *http.Request) time.Duration {
			if strings.Contains(r.URL.Path, "/configmaps/config-") && r.Method != http.MethodGet {
				return 500 * time.Millisecond
			}

			return 0
		})
		w.restartBehind(slow, func() {}, flags...)

		t := newTiny("lost-lease", "v1.0.0").withConfigMaps(count)
		p := t.resource()

		for _, o := range []client.Object{
			t.namespace(), t.configMap(), newTiny("lost-lease", "v1.1.0").withConfigMaps(count).configMap(), p,
		} {
			Expect(w.client.Create(ctx, o)).To(Succeed())
		}

		Eventually(w.read(ctx, p)).WithTimeout(3 * time.Minute).Should(beReady("v1.0.0"))
		w.startSecond(flags...)

		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
		Eventually(func() []string { return w.configMapsOf(ctx, "lost-lease") }).WithTimeout(time.Minute).
			Should(ContainElement(HaveSuffix(" v1.1.0")))

		Expect(w.client.Patch(ctx, lease, client.RawPatch(types.MergePatchType,
			[]byte(`{"spec":{"holderIdentity":"another"}}`)))).To(Succeed())

		Eventually(func() bool { exited, _ := w.operator.Exited(); return exited }).WithTimeout(time.Minute).Should(BeTrue())
		Expect(w.configMapsOf(ctx, "lost-lease")).To(ContainElement(HaveSuffix(" v1.0.0")), "the upgrade was not complete")
		Expect(w.read(ctx, p)(Default)).NotTo(beReady("v1.1.0"))

		Eventually(w.read(ctx, p)).WithTimeout(time.Minute).Should(beReady("v1.1.0"))
		Eventually(func() []string { return w.configMapsOf(ctx, "lost-lease") }).
			Should(And(HaveLen(count), HaveEach(HaveSuffix(" v1.1.0"))))
		Expect(w.helm(ctx, "helm", "history", "infrastructure-lost-lease", "-n", "lost-lease")).To(HaveExactElements(
			HaveField("Status", "superseded"),
			And(HaveField("Status", "failed"), HaveField("Description", HavePrefix("Interrupted: "))),
			HaveField("Status", "deployed"),
		))
	})
})
