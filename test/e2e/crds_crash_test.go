package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/test/bed"
)

// fill creates many objects of the tiny provider's kind.
func (w *world) fill(ctx context.Context, t tiny, version string, objects int) {
	GinkgoHelper()
	Eventually(func() error { return w.client.Create(ctx, t.object(version, "object-0")) }).Should(Succeed())

	var group errgroup.Group
	group.SetLimit(16)

	for i := 1; i < objects; i++ {
		group.Go(func() error { return w.client.Create(ctx, t.object(version, fmt.Sprintf("object-%d", i))) })
	}

	Expect(group.Wait()).To(Succeed())
}

// specs returns the specs of all objects of the tiny provider's kind, by name.
func (w *world) specs(ctx context.Context, t tiny, version string) map[string]string {
	GinkgoHelper()

	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(t.inVersion(version).GroupVersionKind())
	Eventually(func() error { return w.client.List(ctx, list) }).Should(Succeed())

	found := map[string]string{}
	for _, o := range list.Items {
		found[o.GetName()] = fmt.Sprint(o.Object["spec"])
	}

	return found
}

var _ = Describe("A migration of many objects", Ordered, func() {
	const objects = 300

	var w *world

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx)
	})

	It("begins again after a crash, and rewrites each object", func(ctx SpecContext) {
		old, next := newTiny("many", "v1.0.0").serving("v1beta1"), newTiny("many", "v1.1.0").serving("v1beta2")
		w.offer(ctx, old)
		p := old.resource()
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		w.fill(ctx, old, "v1beta1", objects)
		before := w.specs(ctx, old, "v1beta1")
		Expect(before).To(HaveLen(objects))

		w.offer(ctx, next)
		update(ctx, w, p, func(p v1alpha2.Provider) { p.GetSpec().Version = "v1.1.0" })
		Eventually(w.read(ctx, p)).Should(beReady("v1.1.0"))
		w.managerTried(ctx, old.crd())

		Eventually(func() int { return len(w.rewrites(old)) }).Should(BeNumerically(">", objects/3))
		Expect(w.operator.Kill()).To(Succeed())
		Expect(w.definition(ctx, old.crd()).Status.StoredVersions).To(ContainElement("v1beta1"), "killed in the middle")

		restarted := time.Now()

		w.start()

		Eventually(func(g Gomega) {
			crd := w.definition(ctx, old.crd())
			g.Expect(crd.Status.StoredVersions).To(Equal([]string{"v1beta2"}))
			g.Expect(names(crd)).To(Equal([]string{"v1beta2"}), "the old version is removed at the end")
		}).Should(Succeed())
		Eventually(w.read(ctx, p)).Should(And(beReady("v1.1.0"),
			haveCondition(v1alpha2.CRDsMigratedCondition, metav1.ConditionTrue, v1alpha2.CRDsMigratedReason)))
		Expect(w.specs(ctx, old, "v1beta2")).To(Equal(before))

		again := slices.DeleteFunc(w.rewrites(old), func(r bed.Request) bool { return r.Received.Before(restarted) })

		rewritten := map[string]bool{}
		for _, r := range again {
			rewritten[r.Name] = true
		}

		Expect(rewritten).To(HaveLen(objects))
		Expect(again).To(HaveLen(objects), "each is asked for once")
		AddReportEntry("time", fmt.Sprintf("%d objects in %s", objects, again[objects-1].Received.Sub(again[0].Received)))
	})
})

// rewrites returns the requests that rewrote objects of the tiny provider.
func (w *world) rewrites(t tiny) []bed.Request {
	GinkgoHelper()

	return w.operatorWrites(
		func(r bed.Request) bool { return r.Resource == t.plural() && strings.Contains(r.URI, "-migration") },
	)
}

// cycles returns the number of actions to try. The environment variable CAPSTAN_CYCLES overrides
// it.
func cycles() int {
	if n, err := strconv.Atoi(os.Getenv("CAPSTAN_CYCLES")); err == nil {
		return n
	}

	return 12
}

var _ = Describe("Objects of users", Ordered, func() {
	const objects = 150

	var w *world

	BeforeAll(func(ctx SpecContext) {
		w = sharedWorld(ctx)
	})

	It("survive everything that happens to their provider", func(ctx SpecContext) {
		old := newTiny("cycles", "v1.0.0").serving("v1beta1")
		w.offer(ctx, old)
		w.offer(ctx, newTiny("cycles", "v1.1.0").serving("v1beta2", "v1beta1"))
		w.offer(ctx, newTiny("cycles", "v1.2.0").serving("v1beta2", "v1beta1", "v1beta3"))

		p := old.resource()
		Expect(w.client.Create(ctx, p)).To(Succeed())
		Eventually(w.read(ctx, p)).Should(beReady("v1.0.0"))
		w.fill(ctx, old, "v1beta1", objects)
		before := w.specs(ctx, old, "v1beta1")

		l := &life{world: w, tiny: old, provider: p}

		actions := []struct {
			name string
			do   func(context.Context)
		}{
			{
				"upgrade or downgrade",
				l.change,
			},
			{"roll back by the resource", l.rollBack},
			{"roll back with helm", l.helm},
			{"uninstall and install again", l.reinstall},
			{"crash", l.crash},
		}
		for i := range cycles() {
			action := actions[i%len(actions)]
			if i >= len(actions) {
				action = actions[rand.IntN(len(actions))]
			}

			By(fmt.Sprintf("cycle %d: %s", i, action.name))
			action.do(ctx)
		}

		Expect(w.specs(ctx, old, "v1beta1")).To(Equal(before))
		Expect(w.definition(ctx, old.crd()).DeletionTimestamp).To(BeNil())
	})
})

// life performs random actions on a provider.
type life struct {
	*world
	tiny     tiny
	provider *v1alpha2.InfrastructureProvider
}

// pick returns a random version other than the requested one: a release that was rolled back
// manually is kept until another version is requested.
func (l *life) pick() string {
	versions := []string{"v1.0.0", "v1.1.0", "v1.2.0"}
	versions = slices.DeleteFunc(versions, func(v string) bool { return v == l.provider.Spec.Version })

	return versions[rand.IntN(len(versions))]
}

// ready waits until the provider is ready for what its resource asks for now, at any version.
func (l *life) ready(ctx context.Context) {
	GinkgoHelper()
	Eventually(l.read(ctx, l.provider)).Should(Satisfy(func(p v1alpha2.Provider) bool {
		return conditions.IsReady(p) && p.GetStatus().ObservedGeneration == p.GetGeneration()
	}))
}

func (l *life) change(ctx context.Context) {
	GinkgoHelper()

	version := l.pick()
	update(ctx, l.world, l.provider, func(p v1alpha2.Provider) { p.GetSpec().Version, p.GetSpec().Release = version, nil })
	Eventually(l.read(ctx, l.provider)).Should(beReady(version))
	l.managerTried(ctx, l.tiny.crd())
}

// rollBack rolls back to a random revision, and then upgrades again.
func (l *life) rollBack(ctx context.Context) {
	GinkgoHelper()

	to := l.revision(ctx)
	update(ctx, l.world, l.provider, func(p v1alpha2.Provider) {
		p.GetSpec().Release = &v1alpha2.ReleaseSpec{RollbackTo: &to}
	})
	l.ready(ctx)
	l.change(ctx)
}

// revision waits until the provider is ready, and returns a random revision that was healthy. One that helm has made
// never is: a rollback to it is refused, as nothing shows that it is the resource's.
func (l *life) revision(ctx context.Context) int {
	GinkgoHelper()
	l.ready(ctx)

	healthy := slices.DeleteFunc(slices.Clone(l.provider.Status.History), func(r v1alpha2.ReleaseRevision) bool {
		return !r.Healthy
	})
	Expect(healthy).NotTo(BeEmpty())

	return healthy[rand.IntN(len(healthy))].Number
}

func (l *life) helm(ctx context.Context) {
	GinkgoHelper()
	l.run(
		ctx, "helm", "rollback", "infrastructure-"+l.tiny.name, strconv.Itoa(l.revision(ctx)), "-n",
		l.tiny.name,
	)
}

func (l *life) reinstall(ctx context.Context) {
	GinkgoHelper()
	update(ctx, l.world, l.provider, func(p v1alpha2.Provider) {
		p.SetAnnotations(map[string]string{v1alpha2.DeleteInUseAnnotation: "true"})
	})
	Expect(l.client.Delete(ctx, l.provider)).To(Succeed())
	Eventually(gone(ctx, l.world, l.provider)).Should(BeTrue())
	version := l.pick()
	l.provider = l.tiny.resource()
	l.provider.Spec.Version = version
	Expect(l.client.Create(ctx, l.provider)).To(Succeed())
}

func (l *life) crash(ctx context.Context) {
	GinkgoHelper()

	version := l.pick()
	update(ctx, l.world, l.provider, func(p v1alpha2.Provider) { p.GetSpec().Version, p.GetSpec().Release = version, nil })
	killAfter(ctx, l.world, rand.N(time.Second))
	l.start()
}
