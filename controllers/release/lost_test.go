package release_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release"
)

// loss is a way to lose a write. That of a process which is killed right after it has the test of killed processes.
type loss string

const (
	notSent loss = "is not sent, because the process is killed"
	refused loss = "is refused"
	notDone loss = "is answered, and not done"
)

// lostWrite loses one write of a record.
type lostWrite struct {
	http.RoundTripper
	how  loss
	left atomic.Int64 // writes of records until then
	// alive is zero once the process is killed.
	alive *atomic.Int64
}

func (l *lostWrite) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.alive.Load() < 1 {
		return nil, errKilled
	}

	writes := r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/secrets")
	if !writes || l.left.Add(-1) != 0 {
		return l.RoundTripper.RoundTrip(r)
	}

	switch l.how {
	case notSent:
		l.alive.Store(0)

		return nil, errKilled
	case refused:
		r.Header.Set("Impersonate-User", "powerless")
	case notDone:
		query := r.URL.Query()
		query.Set("dryRun", "All")
		r.URL.RawQuery = query.Encode()
	}

	return l.RoundTripper.RoundTrip(r)
}

// losing returns the engine of a process whose n-th write of a record is lost, and a function that reports whether it
// has come to that.
func losing(how loss, n int, changes ...func(*rest.Config)) (engine *release.Engine, came func() bool) {
	l := &lostWrite{how: how, alive: &atomic.Int64{}}
	l.left.Store(int64(n))
	l.alive.Store(lasting)

	changes = append(changes, func(c *rest.Config) {
		c.Wrap(func(next http.RoundTripper) http.RoundTripper {
			l.RoundTripper = next
			return l
		})
	})
	engine = newEngine("victim", changes...)
	victims.Store(engine, l.alive)

	return engine, func() bool { return l.left.Load() < 1 }
}

var _ = Describe("A write of a record that", func() {
	first := func(namespace string) release.Spec {
		return specOf(namespace, "1.0.0", configMap("kept", "1"), configMap("dropped", ""))
	}
	second := func(namespace string) release.Spec {
		return specOf(namespace, "2.0.0", configMap("kept", "2"), configMap("added", ""))
	}
	third := func(namespace string) release.Spec { return specOf(namespace, "3.0.0", configMap("kept", "3")) }

	// While a provider cannot be applied, requests for its ConfigMap fail.
	unavailable := func(c *rest.Config) {
		o := &outage{method: http.MethodPatch, path: "/configmaps/kept"}
		o.left.Store(lasting)
		c.Wrap(func(next http.RoundTripper) http.RoundTripper {
			o.RoundTripper = next
			return o
		})
	}

	nothing := func(SpecContext, string) {}
	installFirst := func(ctx SpecContext, namespace string) { mustApply(ctx, newEngine("one"), first(namespace)) }
	installBoth := func(ctx SpecContext, namespace string) {
		installFirst(ctx, namespace)
		markHealthy(ctx, releaseIn(namespace))
		mustApply(ctx, newEngine("one"), second(namespace))
	}
	rollBack := func(ctx SpecContext, e *release.Engine, namespace string) error {
		options := release.RollbackOptions{Target: confirmed(namespace, 1), Reason: "a test"}
		_, err := rollback(ctx, e, releaseIn(namespace), options, observe(ctx, reader, second(namespace)))

		return err
	}

	type lostAction struct {
		prepare func(SpecContext, string)
		act     step
		changes []func(*rest.Config)
	}

	actions := map[string]lostAction{
		"an installation": {prepare: nothing, act: func(ctx SpecContext, e *release.Engine, namespace string) {
			_, _ = applySpec(ctx, e, first(namespace))
		}},
		"an installation that fails": {prepare: nothing, act: func(ctx SpecContext, e *release.Engine, namespace string) {
			_, _ = applySpec(ctx, e, first(namespace))
		}, changes: []func(*rest.Config){unavailable}},
		"an upgrade": {prepare: installFirst, act: func(ctx SpecContext, e *release.Engine, namespace string) {
			_, _ = applySpec(ctx, e, second(namespace))
		}},
		"an upgrade that fails": {prepare: installFirst, act: func(ctx SpecContext, e *release.Engine, namespace string) {
			_, _ = applySpec(ctx, e, second(namespace))
		}, changes: []func(*rest.Config){unavailable}},
		"a rollback": {prepare: installBoth, act: func(ctx SpecContext, e *release.Engine, namespace string) {
			_ = rollBack(ctx, e, namespace)
		}},
		"a rollback that fails": {prepare: installBoth, act: func(ctx SpecContext, e *release.Engine, namespace string) {
			_ = rollBack(ctx, e, namespace)
		}, changes: []func(*rest.Config){unavailable}},
		"a revision that is marked failed": {
			prepare: installBoth, act: func(ctx SpecContext, e *release.Engine, namespace string) {
				key := releaseIn(namespace)
				newest, _ := accepted(ctx, reader, key).Newest()

				failed := newest
				failed.Status, failed.Failure = v1alpha2.RevisionFailed, v1alpha2.FailureUnhealthy
				Expect(announceBy(e, key)(ctx, failed, nil)).To(Succeed())

				_ = e.MarkFailed(ctx, key, newest, v1alpha2.FailureUnhealthy, "a test")
			},
		},
		"an uninstallation": {prepare: installBoth, act: func(ctx SpecContext, e *release.Engine, namespace string) {
			_, _ = uninstall(ctx, e, releaseIn(namespace), 1, false)
		}},
	}

	// What comes next, whatever the status says of the revision.
	nexts := map[string]func(SpecContext, string){
		"an upgrade": func(ctx SpecContext, namespace string) {
			e := newImpatientEngine() // what is being uninstalled is locked for others

			expectRecovery(ctx, e, third(namespace))
			Expect(configMaps(ctx, namespace)).To(ConsistOf("kept"))
			Expect(getConfigMap(ctx, namespace, "kept").Data).To(HaveKeyWithValue("key", "3"))
		},
		"its completion and an uninstallation": func(ctx SpecContext, namespace string) {
			e, key := newEngine("successor"), releaseIn(namespace)

			if newest, exists := accepted(ctx, reader, key).Newest(); exists && newest.RecordOutdated() {
				Expect(e.Settle(ctx, key, newest)).To(Succeed())

				settled, _ := accepted(ctx, reader, key).Newest()
				Expect(settled.Stored).To(Equal(newest.Status))
				Expect(run(ctx, "helm", "status", name, "-n", namespace)).To(ContainSubstring("STATUS: " + string(newest.Status)))
			}

			expectUninstall(ctx, e, namespace)
		},
	}

	for _, how := range []loss{notSent, refused, notDone} {
		for title, action := range actions {
			It(fmt.Sprintf("%s, during %s, stops nothing that follows", how, title), func(ctx SpecContext) {
				for n := 1; ; n++ {
					lost := false

					for next, follow := range nexts {
						namespace := newNamespace(ctx)
						action.prepare(ctx, namespace)

						victim, came := losing(how, n, action.changes...)
						action.act(ctx, victim, namespace)

						By(fmt.Sprintf("write %d, then %s: %v, known %v", n, next, history(ctx, namespace), knownOf(namespace)))
						follow(ctx, namespace)

						lost = came()
					}

					if !lost {
						Expect(n).To(BeNumerically(">", 1), "the action writes records")
						return
					}
				}
			})
		}
	}
})

var _ = Describe("A write of a record that is refused", func() {
	It("leaves a revision that the same process completes", func(ctx SpecContext) {
		for n := 1; ; n++ {
			namespace := newNamespace(ctx)
			spec := specOf(namespace, "1.0.0", configMap("kept", "1"))

			engine, came := losing(refused, n)
			_, _ = applySpec(ctx, engine, spec)

			if !came() {
				Expect(n).To(BeNumerically(">", 1), "the action writes records")
				return
			}

			By(fmt.Sprintf("write %d: %v, known %v", n, history(ctx, namespace), knownOf(namespace)))
			mustApply(ctx, engine, spec)
			Expect(history(ctx, namespace)).To(HaveLen(1))
		}
	})
})

// knownOf returns number and status of the revisions that the status knows, newest first.
func knownOf(namespace string) []string {
	var known []string
	for _, entry := range statusOf(releaseIn(namespace)).History {
		known = append(known, fmt.Sprintf("%d %s", entry.Number, entry.Status))
	}

	return known
}
