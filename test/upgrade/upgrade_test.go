// Package upgrade replaces an operator by that of another release, in both directions, while it manages providers in
// all states: nothing restarts, no revision is created, and each can roll back to all revisions of the other.
package upgrade

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// before is the commit of the previous release; the tag, from the first one on.
const before = "ba44d351b8783af9b70c1d3eab3a53d988c42356"

func TestUpgrade(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(2 * time.Minute)
	SetDefaultEventuallyPollingInterval(200 * time.Millisecond)
	RunSpecs(t, "Upgrade of the operator")
}

var _ = Describe("The operator", Ordered, func() {
	var (
		w          *world
		old, now   release
		healthy    []*installation // with three revisions
		inProgress *installation
		known      seen
	)

	BeforeAll(func(ctx SpecContext) {
		old, now = previous(ctx, before), today(ctx)
		w = newWorld(ctx, old)
	})

	AfterEach(func(ctx SpecContext) {
		if CurrentSpecReport().Failed() {
			w.show(ctx)
		}
	})

	ready := func(ctx context.Context, i *installation, version string) {
		GinkgoHelper()
		Eventually(func(g Gomega) {
			g.Expect(w.client.Get(ctx, client.ObjectKeyFromObject(i), i.Provider)).To(Succeed())
			s := statusOf(i)
			g.Expect(s.installed).To(Equal(version), v1alpha2.FullName(i))
			g.Expect(s.conditions).To(ContainElement(HavePrefix("Ready=True")), v1alpha2.FullName(i))
			g.Expect(i.GetStatus().ObservedGeneration).To(Equal(i.GetGeneration()))
			g.Expect(s.release).To(Equal("deployed"))
		}).Should(Succeed())
	}

	It("of the previous release has installed providers, each with three revisions", func(ctx SpecContext) {
		paused, suspended, failed := infrastructure("paused"), infrastructure("suspended"), failing()
		far := small(v1alpha2.CoreProviderType, "cluster-api", "far", "v1.0.0", "v1.0.1").in(ctx, w.client, w.there)
		upgrades := automatic()

		inProgress = staged()

		healthy = append(five(ctx), far, upgrades)

		all := append(healthy[:len(healthy):len(healthy)], paused, suspended, failed, inProgress)
		for _, i := range all {
			Expect(i.releases[0].Prepare(ctx, w.client)).To(Succeed())
			Expect(w.client.Create(ctx, i.Provider)).To(Succeed())
		}

		for _, i := range all {
			ready(ctx, i, i.releases[0].Bundle.Version)
		}

		for _, i := range all {
			for _, next := range i.releases[1:] {
				Expect(next.Prepare(ctx, w.client)).To(Succeed())
			}

			if version := i.releases[1].Bundle.Version; i != upgrades {
				w.edit(ctx, i, func(spec *v1alpha2.ProviderSpec) { spec.Version = version })
			}
		}

		for _, i := range all {
			if i != upgrades {
				ready(ctx, i, i.releases[1].Bundle.Version)
			}
		}

		// A request makes the operator ask the source.
		patch := client.MergeFrom(upgrades.DeepCopyObject().(client.Object))
		upgrades.SetAnnotations(map[string]string{v1alpha2.ReconcileRequestAnnotation: "now"})
		Expect(w.client.Patch(ctx, upgrades.Provider, patch)).To(Succeed())
		ready(ctx, upgrades, "v1.0.1")

		for _, i := range all {
			w.edit(ctx, i, i.then)
		}

		Eventually(func(g Gomega) {
			for _, i := range all {
				g.Expect(w.client.Get(ctx, client.ObjectKeyFromObject(i), i.Provider)).To(Succeed())
				g.Expect(len(i.GetStatus().History)).To(BeNumerically(">=", 3), v1alpha2.FullName(i))
			}
		}).Should(Succeed())

		for _, i := range append(healthy[:len(healthy):len(healthy)], paused, suspended) {
			ready(ctx, i, i.releases[1].Bundle.Version)
		}

		w.edit(ctx, paused, func(spec *v1alpha2.ProviderSpec) { spec.Paused = true })
		w.edit(ctx, suspended, func(spec *v1alpha2.ProviderSpec) { spec.Suspend = true })

		for i, reason := range map[*installation]string{
			paused: "Ready=True " + v1alpha2.PausedReason, suspended: "Ready=True " + v1alpha2.SuspendedReason,
			failed:     "Stalled=True " + v1alpha2.TimedOutWaitingForDeploymentReason,
			inProgress: "Ready=False " + v1alpha2.ProgressingReason,
		} {
			Eventually(func(g Gomega) {
				g.Expect(w.client.Get(ctx, client.ObjectKeyFromObject(i), i.Provider)).To(Succeed())
				g.Expect(statusOf(i).conditions).To(ContainElement(HavePrefix(reason)), v1alpha2.FullName(i))
			}).Should(Succeed())
		}
	})

	// replaces checks that nothing changes while another operator takes over.
	replaces := func(ctx context.Context, next release) {
		GinkgoHelper()

		w.settle(time.Now().Add(-time.Minute))
		known = w.look(ctx)
		writes := w.replace(ctx, next)
		AddReportEntry(fmt.Sprintf("%d and %d objects, %d and %d records, %d providers; writes",
			len(known.objects["here"]), len(known.objects["there"]), len(known.records["here"]), len(known.records["there"]),
			len(known.statuses)), writes)

		found := w.look(ctx)
		Expect(found.objects).To(Equal(known.objects))
		Expect(found.records).To(Equal(known.records))

		for name, before := range known.statuses {
			Expect(found.statuses[name]).To(Equal(before), name)
		}

		const configuration = "patch configmaps default/capstan-configuration"
		if next == now {
			Expect(writes).To(ContainElement(configuration))
		}

		for _, write := range writes {
			Expect(write).To(Or(MatchRegexp(`^patch \w+providers/status `), Equal(configuration)))
		}
	}

	// rollsBack rolls back to every revision from one on, and installs what the spec asks for again.
	rollsBack := func(ctx context.Context, to int64) {
		GinkgoHelper()

		const kept = 50 // revisions

		versions := map[*installation]map[int64]string{}

		for _, i := range healthy {
			versions[i] = map[int64]string{}
			for _, r := range i.GetStatus().History {
				versions[i][r.Revision] = r.Version
			}
		}

		for ; ; to++ {
			exist := slices.DeleteFunc(slices.Clone(healthy), func(i *installation) bool { return versions[i][to] == "" })
			if len(exist) == 0 {
				break
			}

			for _, i := range exist {
				w.edit(ctx, i, func(spec *v1alpha2.ProviderSpec) {
					spec.Release = &v1alpha2.ReleaseSpec{HistoryLimit: ptr.To(int32(kept)), RollbackTo: &to}
				})
			}

			for _, i := range exist {
				before := statusOf(i).revision
				ready(ctx, i, versions[i][to])
				Expect(statusOf(i).revision).To(Equal(before+1), v1alpha2.FullName(i))
			}
		}

		AddReportEntry("rolled back to", to-1)

		for _, i := range healthy {
			w.edit(ctx, i, func(spec *v1alpha2.ProviderSpec) { spec.Release.RollbackTo = nil })
		}

		for _, i := range healthy {
			ready(ctx, i, i.releases[1].Bundle.Version)
		}
	}

	It("is replaced by that of today, which changes nothing", func(ctx SpecContext) { replaces(ctx, now) })

	It("completes waves that its predecessor has begun", func(ctx SpecContext) {
		nodes := &corev1.NodeList{}
		Expect(w.client.List(ctx, nodes)).To(Succeed())

		node := &nodes.Items[0]
		patch := client.MergeFrom(node.DeepCopy())
		node.Labels["gate"] = "open"
		Expect(w.client.Patch(ctx, node, patch)).To(Succeed())

		ready(ctx, inProgress, "v1.1.0")

		last := client.ObjectKey{Namespace: inProgress.GetNamespace(), Name: "last"}
		Expect(w.client.Get(ctx, last, &corev1.ConfigMap{})).To(Succeed())
		Expect(statusOf(inProgress).revision).To(Equal(int64(3)))
	})

	It("rolls back to each revision of its predecessor", func(ctx SpecContext) { rollsBack(ctx, 1) })

	It("is replaced by its predecessor again, which changes nothing", func(ctx SpecContext) { replaces(ctx, old) })

	It("of the previous release rolls back to each revision of today's", func(ctx SpecContext) { rollsBack(ctx, 4) })

	It("is replaced by that of today once more, which changes nothing", func(ctx SpecContext) { replaces(ctx, now) })

	It("rolls back a revision that fails to the one that its predecessor has seen healthy", func(ctx SpecContext) {
		i := healthy[len(healthy)-1]
		before := statusOf(i).revision

		w.edit(ctx, i, func(spec *v1alpha2.ProviderSpec) {
			spec.Release = &impatient
			spec.Deployment.NodeSelector = map[string]string{"no": "such-node"}
		})
		Eventually(func(g Gomega) {
			g.Expect(w.client.Get(ctx, client.ObjectKeyFromObject(i), i.Provider)).To(Succeed())
			g.Expect(statusOf(i).history[0]).To(HavePrefix(fmt.Sprintf("%d ", before+2)))
			g.Expect(ptr.Deref(i.GetStatus().InstalledVersion, "")).To(Equal("v1.0.1"))
		}).Should(Succeed())
	})
})
