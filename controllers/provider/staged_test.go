package provider

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/asks"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/object"
)

var manager, own = object.Key{Name: "manager"}, object.Key{Name: "own"}

func TestWaitingObjectsAreNotHealthy(t *testing.T) {
	for name, all := range map[string][]health.ObjectHealth{
		"missing": {
			{Object: manager, Result: health.Result{Status: status.CurrentStatus}},
			{Object: own, Result: health.Result{Status: status.NotFoundStatus}},
		},
		"from an earlier revision": {
			{Object: own, Result: health.Result{Status: status.CurrentStatus}},
			{Object: manager, Result: health.Result{Status: status.CurrentStatus}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			held := asks.Held{Object: own, Place: asks.Order{}.Applied(true), Own: true}
			report := health.Report{Objects: withWaiting(all, []asks.Held{held})}
			g.Expect(report.Objects).To(HaveLen(2))
			g.Expect(report.Missing()).To(BeEmpty(), "drift must not create it")
			g.Expect(report.Unhealthy()).To(HaveExactElements(HaveField("Object", own)))
			g.Expect(report.Message("")).To(ContainSubstring("is applied once the provider's manager is healthy"))

			g.Expect(health.Report{Objects: withWaiting(all, nil)}.Objects).To(Equal(all))
		})
	}
}

func TestAdvanceProblems(t *testing.T) {
	failed := []*apply.ObjectError{{Object: own, Reason: "failed calling webhook"}}
	remaining := []apply.Remaining{{Object: own, Finalizers: []string{"a/b", "c"}}}

	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"none":                   {},
		"a webhook that is away": {&apply.UnavailableError{Objects: failed}, "yet: failed calling webhook"},
		"a deletion that is refused": {
			&apply.RemoveError{Objects: failed}, "removed from the release yet: failed calling webhook",
		},
		"finalizers": {&apply.RemainingError{Objects: remaining}, "its finalizers hold it: a/b, c"},
		"a Pod that stops": {&apply.RemainingError{Objects: []apply.Remaining{{Object: own}}},
			"no longer part of the release and is being deleted; other objects"},
		"an object that is refused":   {&apply.RejectedError{Objects: failed}, ""},
		"an object of others":         {&apply.ConflictError{}, ""},
		"an error of another request": {errors.New("no connection"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			problems := advanceProblems(c.err)
			if c.want == "" {
				NewWithT(t).Expect(problems).To(BeEmpty())
				return
			}

			NewWithT(t).Expect(problems).To(HaveExactElements(And(
				HaveField("Object", own), HaveField("Message", ContainSubstring(c.want)))))
		})
	}
}

func TestAdvanceAfter(t *testing.T) {
	for age, want := range map[time.Duration]time.Duration{
		0: minAdvance, 20 * time.Second: 5 * time.Second, time.Hour: maxAdvance, -time.Hour: minAdvance,
	} {
		NewWithT(t).Expect(advanceAfter(age)).To(Equal(want), "%s", age)
	}
}

// TestRequeueStaged: no watch shows when objects without a status let the next wave begin.
func TestRequeueStaged(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*run)
		woken  bool
	}{
		"after a step":                  {func(r *run) { staged(r, ownObject) }, true},
		"before others are healthy":     {func(r *run) { sick(r); staged(r, ownObject) }, false},
		"without a step":                {func(r *run) { staged(r, ownObject); r.done.advanced = false }, false},
		"once the revision is complete": {func(*run) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			woken := false
			r := newTestRun(revision(1, v1alpha2.RevisionDeployed, wanted))
			r.done.advanced, r.Wake = true, func(string, string, time.Duration) { woken = true }
			c.change(r)

			r.requeueStaged()
			NewWithT(t).Expect(woken).To(Equal(c.woken))
		})
	}
}
