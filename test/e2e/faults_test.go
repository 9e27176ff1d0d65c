package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/faults"
	"github.com/capstan-project/capstan/test/harness"
)

var _ = Describe("An API server with faults", Ordered, func() {
	var (
		w      *world
		faulty *faults.Faults
	)

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx)
		faulty = faults.New(uint64(GinkgoRandomSeed()))
		w.restartBehind(faulty, func() {})
	})

	// start installs the first of two versions of a provider, which has no retries to waste.
	start := func(ctx SpecContext, first, second tiny) v1alpha2.Provider {
		GinkgoHelper()

		p := first.resource()
		p.Spec.Release = &v1alpha2.ReleaseSpec{Retries: ptr.To(int32(0))}

		for _, o := range []client.Object{first.namespace(), first.configMap(), second.configMap(), p} {
			Expect(w.client.Create(ctx, o)).To(Succeed())
		}

		Eventually(w.read(ctx, p)).Should(beReady(first.version))

		return p
	}

	upgrade := func(ctx SpecContext, p v1alpha2.Provider) {
		GinkgoHelper()
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
	}

	// One request in 100 fails, before or after it took effect. The upgrade changes, creates and deletes 30 objects, which
	// takes a read, a dry run and a write for each.
	It("takes longer for an upgrade, but does not fail it", func(ctx SpecContext) {
		p := start(ctx, newTiny("faulty", "v1.0.0").withConfigMaps(28), newTiny("faulty", "v1.1.0").withConfigMaps(28))

		faulty.SetRate(0.01)
		DeferCleanup(faulty.SetRate, 0.0)

		started := time.Now()

		upgrade(ctx, p)
		Eventually(w.read(ctx, p)).WithTimeout(2 * time.Minute).Should(beReady("v1.1.0"))
		AddReportEntry("upgrade", fmt.Sprintf("%.1f s, %d faults", time.Since(started).Seconds(), faulty.Injected()))

		history := w.helm(ctx, "helm", "history", "infrastructure-faulty", "-n", "faulty")
		Expect(history).To(HaveEach(HaveField("Description", Not(HavePrefix("Rollback")))))
		Expect(history[len(history)-1]).To(HaveField("Status", "deployed"))
		Expect(w.configMapsOf(ctx, "faulty")).To(And(HaveLen(28), HaveEach(HaveSuffix(" v1.1.0"))))
	})

	It("delays the deletion of what an upgrade leaves, without a rollback", func(ctx SpecContext) {
		p := start(ctx, newTiny("pruning", "v1.0.0").withConfigMaps(2), newTiny("pruning", "v1.1.0").withConfigMaps(2))

		faulty.Break(func(r *http.Request) bool {
			return r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/configmaps/config-0-v1-0-0")
		})
		DeferCleanup(func() { faulty.Break(nil) })

		upgrade(ctx, p)
		Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.InstallFailedReason,
			"ConfigMap pruning/config-0-v1-0-0 could not be deleted: an injected fault"))
		Expect(w.configMapsOf(ctx, "pruning")).To(ConsistOf(
			"config-0-v1-0-0 v1.0.0", "config-0-v1-1-0 v1.1.0", "config-1 v1.1.0"))

		faulty.Break(nil)
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
		Expect(w.configMapsOf(ctx, "pruning")).To(ConsistOf("config-0-v1-1-0 v1.1.0", "config-1 v1.1.0"))
		Expect(w.helm(ctx, "helm", "history", "infrastructure-pruning", "-n", "pruning")).To(HaveExactElements(
			HaveField("Status", "superseded"), HaveField("Status", "deployed")))
	})

	It("delays a rollback, which keeps its reason", func(ctx SpecContext) {
		first, second := newTiny("delayed", "v1.0.0").withConfigMaps(2), newTiny("delayed", "v1.1.0").withConfigMaps(2)
		p := start(ctx, first, failing(second))

		faulty.Break(func(r *http.Request) bool {
			return r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/configmaps/config-1") &&
				!r.URL.Query().Has("dryRun") && strings.Contains(bodyOf(r), "v1.0.0")
		})
		DeferCleanup(func() { faulty.Break(nil) })

		const reason = "it cannot become healthy: Job prepare"

		upgrade(ctx, p)
		Eventually(w.read(ctx, p)).Should(notBeReady(v1alpha2.UnhealthyReason, "v1.1.0 failed, will be tried again: "+reason,
			"the rollback failed: ConfigMap delayed/config-1 could not be applied for now: an injected fault"))

		faulty.Break(nil)
		Eventually(w.read(ctx, p)).Should(And(
			notBeReady(v1alpha2.UnhealthyReason, reason, "v1.0.0 runs; v1.1.0 failed, given up: "),
			beStalled(v1alpha2.UnhealthyReason),
		))
		Expect(w.helm(ctx, "helm", "history", "infrastructure-delayed", "-n", "delayed")).To(HaveExactElements(
			HaveField("Status", "superseded"),
			HaveField("Status", "failed"),
			And(HaveField("Status", "deployed"),
				HaveField("Description", And(HavePrefix("Rollback to 1: "), ContainSubstring(reason)))),
		))
	})
})

// bodyOf returns the body of a request, and leaves it to be read again.
func bodyOf(r *http.Request) string {
	GinkgoHelper()

	body, err := io.ReadAll(r.Body)
	Expect(err).NotTo(HaveOccurred())

	r.Body = io.NopCloser(bytes.NewReader(body))

	return string(body)
}

// restartBehind starts the operator again, behind a proxy with faults, until the end of the container. Something
// happens before it starts. It returns what starts it once more.
func (w *world) restartBehind(f *faults.Faults, before func(), flags ...string) (start func()) {
	GinkgoHelper()
	Expect(w.operator.Stop()).To(Succeed())
	before()

	config, err := w.bed.ConfigFor(harness.OperatorUser)
	Expect(err).NotTo(HaveOccurred())

	kubeconfig := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	proxy, err := f.Serve(config, kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(proxy.Close)
	DeferCleanup(func() { w.restart() })

	start = func() {
		w.operator, err = harness.StartOperatorAs(w.bed, kubeconfig, []string{program}, w.log, flags...)
		Expect(err).NotTo(HaveOccurred())
	}
	start()

	return start
}

// withConfigMaps adds ConfigMaps to the components: one half exists in every version, the other half
// only in this one.
func (t tiny) withConfigMaps(count int) tiny {
	var all strings.Builder

	for i := range count {
		name := fmt.Sprintf("config-%d", i)
		if i%2 == 0 {
			name += "-" + strings.ReplaceAll(t.version, ".", "-")
		}

		fmt.Fprintf(&all, "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  namespace: %s-system\n"+
			"  labels: {configured: \"true\"}\ndata: {version: %s}\n", name, t.name, t.version)
	}

	t.components += all.String()

	return t
}

// configMapsOf returns name and version of the ConfigMaps of withConfigMaps in a namespace.
func (w *world) configMapsOf(ctx context.Context, namespace string) []string {
	GinkgoHelper()

	list := &corev1.ConfigMapList{}
	configured := client.MatchingLabels{"configured": "true"}
	Expect(w.client.List(ctx, list, client.InNamespace(namespace), configured)).To(Succeed())

	found := make([]string, 0, len(list.Items))
	for _, item := range list.Items {
		found = append(found, item.Name+" "+item.Data["version"])
	}

	return found
}
