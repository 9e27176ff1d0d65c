package release_test

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// killedConnection is the connection of a process that is killed right after its n-th write: that
// request reaches the API server; its response and all later requests are lost.
type killedConnection struct {
	http.RoundTripper
	left *atomic.Int64
}

var errKilled = errors.New("the process was killed")

func (c killedConnection) RoundTrip(r *http.Request) (*http.Response, error) {
	write := r.Method != http.MethodGet && !r.URL.Query().Has("dryRun")

	left := c.left.Load()
	if write {
		left = c.left.Add(-1) + 1
	}

	if left <= 0 {
		return nil, errKilled
	}

	response, err := c.RoundTripper.RoundTrip(r)
	if left == 1 && write {
		if err == nil {
			err = response.Body.Close()
		}

		return nil, errors.Join(errKilled, err)
	}

	return response, err
}

// killedAfter returns the engine of a process that is killed after so many writes, and a function
// that reports whether it is still alive.
func killedAfter(writes int) (engine *release.Engine, alive func() bool) {
	left := &atomic.Int64{}
	left.Store(int64(writes))

	engine = newEngine("victim", func(c *rest.Config) {
		c.Wrap(func(rt http.RoundTripper) http.RoundTripper { return killedConnection{rt, left} })
	})

	victims.Store(engine, left)

	return engine, func() bool { return left.Load() > 0 }
}

// step is what one process does with the release in a namespace.
type step func(ctx SpecContext, e *release.Engine, namespace string)

var _ = Describe("A process that is killed", func() {
	first := func(namespace string) release.Spec {
		return specOf(namespace, "1.0.0", configMap("kept", "1"), configMap("dropped", ""), serviceAccount("manager"),
			deployment("manager", "1"))
	}
	second := func(namespace string) release.Spec {
		return specOf(namespace, "2.0.0", configMap("kept", "2"), configMap("added", ""), serviceAccount("manager"),
			deployment("manager", "2"))
	}

	// Steps of a process that may be killed ignore errors.
	nothing := func(SpecContext, *release.Engine, string) {}
	installFirst := func(ctx SpecContext, e *release.Engine, namespace string) {
		_, _ = applySpec(ctx, e, first(namespace))
	}
	applySecond := func(ctx SpecContext, e *release.Engine, namespace string) {
		_, _ = applySpec(ctx, e, second(namespace))
	}
	installBoth := func(ctx SpecContext, e *release.Engine, namespace string) {
		mustApply(ctx, e, first(namespace))
		mustApply(ctx, e, second(namespace))
	}
	uninstall := func(ctx SpecContext, e *release.Engine, namespace string) {
		_, _ = uninstall(ctx, e, releaseIn(namespace), 1, false)
	}

	recoverFirst := func(ctx SpecContext, e *release.Engine, namespace string) {
		expectRecovery(ctx, e, first(namespace))
		Expect(configMaps(ctx, namespace)).To(ConsistOf("kept", "dropped"))
	}
	recoverSecond := func(ctx SpecContext, e *release.Engine, namespace string) {
		expectRecovery(ctx, e, second(namespace))
		Expect(configMaps(ctx, namespace)).To(ConsistOf("kept", "added"))
	}

	// forEachWrite kills the second step after its first write, its second and so on, each time in
	// another namespace, until it survives.
	forEachWrite := func(ctx SpecContext, prepare, act, check step) {
		GinkgoHelper()

		for n := 1; ; n++ {
			namespace := newNamespace(ctx)
			prepare(ctx, newEngine("predecessor"), namespace)

			victim, alive := killedAfter(n)
			act(ctx, victim, namespace)
			By(fmt.Sprintf("recovering from %v after write %d", history(ctx, namespace), n))
			check(ctx, newEngine("successor"), namespace)

			if alive() {
				Expect(n).To(BeNumerically(">", 4), "the action makes more writes than that")
				return
			}
		}
	}

	It("during an install leaves a release that can be repaired", func(ctx SpecContext) {
		forEachWrite(ctx, nothing, installFirst, recoverFirst)
	})

	It("during an upgrade leaves a release that can be repaired", func(ctx SpecContext) {
		forEachWrite(ctx, installFirst, applySecond, recoverSecond)
	})

	It("during an upgrade leaves a release that can be reverted", func(ctx SpecContext) {
		forEachWrite(ctx, installFirst, applySecond, recoverFirst)
	})

	It("during an upgrade leaves a release that can be uninstalled", func(ctx SpecContext) {
		forEachWrite(ctx, installFirst, applySecond, expectUninstall)
	})

	It("during a rollback leaves a release that can be rolled back", func(ctx SpecContext) {
		rollBack := func(ctx SpecContext, e *release.Engine, namespace string) error {
			observed := e.Determine(accepted(ctx, reader, releaseIn(namespace)), "")
			options := release.RollbackOptions{Target: confirmed(namespace, 1), Reason: "a test"}
			_, err := rollback(ctx, e, releaseIn(namespace), options, observed)

			return err
		}

		forEachWrite(ctx, installBoth,
			func(ctx SpecContext, e *release.Engine, namespace string) { _ = rollBack(ctx, e, namespace) },
			func(ctx SpecContext, e *release.Engine, namespace string) {
				Expect(rollBack(ctx, e, namespace)).To(Succeed())
				Expect(configMaps(ctx, namespace)).To(ConsistOf("kept", "dropped"))

				revisions := history(ctx, namespace)
				Expect(revisions).NotTo(ContainElement(ContainSubstring("pending")))
				Expect(revisions[len(revisions)-1]).To(HaveSuffix("deployed"))
			})
	})

	It("during an uninstall leaves a release that can be uninstalled and reinstalled", func(ctx SpecContext) {
		reinstall := func(ctx SpecContext, _ *release.Engine, namespace string) {
			e := newImpatientEngine()

			Eventually(func() error { _, err := applySpec(ctx, e, second(namespace)); return err }).Should(Succeed())
			Expect(configMaps(ctx, namespace)).To(ConsistOf("kept", "added"))
		}

		forEachWrite(ctx, installBoth, uninstall, expectUninstall)
		forEachWrite(ctx, installBoth, uninstall, reinstall)
	})

	It("during a recovery leaves a release that can be repaired", func(ctx SpecContext) {
		interruptInstall := func(ctx SpecContext, _ *release.Engine, namespace string) {
			victim, _ := killedAfter(3)
			_, err := applySpec(ctx, victim, first(namespace))
			Expect(err).To(HaveOccurred())
		}

		forEachWrite(ctx, interruptInstall, applySecond, recoverSecond)
	})

	It("leaves a revision that does not count as an attempt", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		mustApply(ctx, newEngine("predecessor"), first(namespace))

		victim, _ := killedAfter(3)
		applySecond(ctx, victim, namespace)
		Expect(history(ctx, namespace)).To(HaveExactElements("1 deployed", "2 pending-upgrade"))

		successor := newEngine("successor")
		expectRecovery(ctx, successor, second(namespace))

		recovered := accepted(ctx, successor, releaseIn(namespace))

		interrupted, exists := recovered.Find(2)
		Expect(exists).To(BeTrue())
		Expect(interrupted.Status).To(Equal(v1alpha2.RevisionFailed))
		Expect(interrupted.Failure).To(Equal(v1alpha2.FailureInterrupted))
		Expect(run(ctx, "helm", "status", name, "-n", namespace)).To(ContainSubstring("STATUS: deployed"))
	})
})

// expectRecovery applies the desired state, unless it is in sync, and expects that nothing of the
// accident is left.
func expectRecovery(ctx SpecContext, e *release.Engine, spec release.Spec) {
	GinkgoHelper()

	observed := observe(ctx, e, spec)
	Expect(observed.State).NotTo(Equal(state.Locked), observed.Message)

	if observed.State != state.InSync {
		result, err := applyObserved(ctx, e, spec, observed)
		Expect(err).NotTo(HaveOccurred())
		Expect(result.Status).To(Equal(v1alpha2.RevisionDeployed))
	}

	Expect(observe(ctx, e, spec).State).To(Equal(state.InSync))

	revisions := history(ctx, spec.Release.Namespace)
	Expect(revisions).NotTo(ContainElement(ContainSubstring("pending")))
	Expect(revisions[len(revisions)-1]).To(HaveSuffix("deployed"))
}

// expectUninstall uninstalls a release and expects that nothing is left.
func expectUninstall(ctx SpecContext, e *release.Engine, namespace string) {
	GinkgoHelper()

	_, err := uninstall(ctx, e, releaseIn(namespace), 1, false)
	Expect(err).NotTo(HaveOccurred())
	Expect(history(ctx, namespace)).To(BeEmpty())
	Expect(configMaps(ctx, namespace)).To(BeEmpty())

	deployments, err := client.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	Expect(deployments.Items).To(BeEmpty())
}
