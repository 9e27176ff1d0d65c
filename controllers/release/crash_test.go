package release_test

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/controllers/release"
)

// mortal is the connection of a process that is killed right after its n-th write: that one reaches
// the API server, its answer and everything after it are lost.
type mortal struct {
	http.RoundTripper
	left *atomic.Int64
}

var errKilled = errors.New("the process was killed")

func (m mortal) RoundTrip(r *http.Request) (*http.Response, error) {
	left := m.left.Load()
	if r.Method != http.MethodGet {
		left = m.left.Add(-1) + 1
	}

	if left <= 0 {
		return nil, errKilled
	}

	response, err := m.RoundTripper.RoundTrip(r)
	if left == 1 && r.Method != http.MethodGet {
		if err == nil {
			err = response.Body.Close()
		}

		return nil, errors.Join(errKilled, err)
	}

	return response, err
}

// killedAfter makes an engine of a process that is killed after so many writes. alive reports whether
// it still lives.
func killedAfter(writes int) (engine *release.Engine, alive func() bool) {
	left := &atomic.Int64{}
	left.Store(int64(writes))

	engine = newEngine("victim", func(c *rest.Config) {
		c.Wrap(func(rt http.RoundTripper) http.RoundTripper { return mortal{rt, left} })
	})

	return engine, func() bool { return left.Load() > 0 }
}

var _ = Describe("A process that is killed", func() {
	first := func(namespace string) release.Desired {
		return desired(
			namespace,
			chartOf("1.0.0", configMap("kept", "1"), configMap("dropped", ""), serviceAccount("manager"),
				deployment("manager", "1")),
			nil,
		)
	}
	second := func(namespace string) release.Desired {
		return desired(namespace, chartOf("2.0.0", configMap("kept", "2"), configMap("added", ""), serviceAccount("manager"),
			deployment("manager", "2")), nil)
	}

	// forEachWrite kills a process after its first write, its second and so on, each in a namespace
	// of its own, until it survives.
	forEachWrite := func(ctx SpecContext, prepare, act, check func(e *release.Engine, namespace string)) {
		GinkgoHelper()

		for n := 1; ; n++ {
			namespace := newNamespace(ctx)
			prepare(newEngine("predecessor"), namespace)

			victim, alive := killedAfter(n)
			act(victim, namespace)
			By(fmt.Sprintf("recovering from %v after write %d", history(ctx, namespace), n))
			check(newEngine("successor"), namespace)

			if alive() {
				Expect(n).To(BeNumerically(">", 4), "the action makes more writes than that")
				return
			}
		}
	}
	nothing := func(*release.Engine, string) {}

	It("while it installs is recovered from, whatever it wrote last", func(ctx SpecContext) {
		forEachWrite(ctx, nothing, func(e *release.Engine, namespace string) {
			_, _ = apply(ctx, e, first(namespace))
		}, func(e *release.Engine, namespace string) {
			recovered(ctx, e, first(namespace))
			Expect(configMaps(ctx, namespace)).To(ConsistOf("kept", "dropped"))
		})
	})

	It("while it upgrades is recovered from", func(ctx SpecContext) {
		forEachWrite(ctx, func(e *release.Engine, namespace string) { mustApply(ctx, e, first(namespace)) },
			func(e *release.Engine, namespace string) {
				_, _ = apply(ctx, e, second(namespace))
			}, func(e *release.Engine, namespace string) {
				recovered(ctx, e, second(namespace))
				Expect(configMaps(ctx, namespace)).To(ConsistOf("kept", "added"))
			})
	})

	It("while it upgrades is recovered from by going back to what was before", func(ctx SpecContext) {
		forEachWrite(ctx, func(e *release.Engine, namespace string) { mustApply(ctx, e, first(namespace)) },
			func(e *release.Engine, namespace string) {
				_, _ = apply(ctx, e, second(namespace))
			}, func(e *release.Engine, namespace string) {
				recovered(ctx, e, first(namespace))
				Expect(configMaps(ctx, namespace)).To(ConsistOf("kept", "dropped"))
			})
	})

	It("while it upgrades does not stand in the way of an uninstall", func(ctx SpecContext) {
		forEachWrite(ctx, func(e *release.Engine, namespace string) { mustApply(ctx, e, first(namespace)) },
			func(e *release.Engine, namespace string) {
				_, _ = apply(ctx, e, second(namespace))
			}, func(e *release.Engine, namespace string) { uninstalled(ctx, e, namespace) })
	})

	It("while it uninstalls is recovered from, by another uninstall or by another install", func(ctx SpecContext) {
		uninstall := func(e *release.Engine, namespace string) { _, _ = e.Uninstall(ctx, namespace, name) }
		prepare := func(e *release.Engine, namespace string) {
			mustApply(ctx, e, first(namespace))
			mustApply(ctx, e, second(namespace))
		}
		forEachWrite(ctx, prepare, uninstall, func(e *release.Engine, namespace string) { uninstalled(ctx, e, namespace) })
		forEachWrite(ctx, prepare, uninstall, func(_ *release.Engine, namespace string) {
			e := newImpatientEngine("successor")

			Eventually(func() error { _, err := apply(ctx, e, second(namespace)); return err }).Should(Succeed())
			Expect(configMaps(ctx, namespace)).To(ConsistOf("kept", "added"))
		})
	})

	It("while it recovers is recovered from", func(ctx SpecContext) {
		forEachWrite(ctx, func(_ *release.Engine, namespace string) {
			victim, _ := killedAfter(3)
			_, err := apply(ctx, victim, first(namespace))
			Expect(err).To(HaveOccurred())
		}, func(e *release.Engine, namespace string) {
			_, _ = apply(ctx, e, second(namespace))
		}, func(e *release.Engine, namespace string) {
			recovered(ctx, e, second(namespace))
			Expect(configMaps(ctx, namespace)).To(ConsistOf("kept", "added"))
		})
	})
})

// recovered brings a release to what is desired, if it is not already, and sees to it that nothing
// of an accident is left.
func recovered(ctx SpecContext, e *release.Engine, d release.Desired) {
	GinkgoHelper()

	state := stateOf(ctx, e, d)
	Expect(state.Condition).NotTo(Equal(release.Pending), state.Message)

	if state.Condition != release.InSync {
		result, err := e.Apply(ctx, d, state)
		Expect(err).NotTo(HaveOccurred())
		Expect(result.Status).To(Equal(release.StatusDeployed))
	}

	Expect(stateOf(ctx, e, d).Condition).To(Equal(release.InSync))
	revisions := history(ctx, d.Namespace)
	Expect(revisions).NotTo(ContainElement(ContainSubstring("pending")))
	Expect(revisions[len(revisions)-1]).To(HaveSuffix("deployed"))
	Expect(run(ctx, "helm", "status", name, "-n", d.Namespace)).To(ContainSubstring("STATUS: deployed"))
}

// uninstalled removes a release and sees to it that nothing is left.
func uninstalled(ctx SpecContext, e *release.Engine, namespace string) {
	GinkgoHelper()

	_, err := e.Uninstall(ctx, namespace, name)
	Expect(err).NotTo(HaveOccurred())
	Expect(history(ctx, namespace)).To(BeEmpty())
	Expect(configMaps(ctx, namespace)).To(BeEmpty())
	Expect(run(ctx, "kubectl", "get", "deployments", "-n", namespace)).To(ContainSubstring("No resources found"))
}
