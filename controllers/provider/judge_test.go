package provider

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/asks"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// justMade returns a revision that Capstan made a minute ago.
func justMade(number int, status v1alpha2.RevisionStatus, digest string) state.Revision {
	r := revision(number, status, digest)
	r.Time.Time = now.Add(-time.Minute)
	r.LastTransitionTime = r.Time

	return r
}

// judgedRun returns a run of a release that rolls failed revisions back. All objects are healthy.
func judgedRun(revisions ...state.Revision) *run {
	r := newTestRun(revisions...)
	r.policy = state.Policy{Retries: 3, Timeout: 5 * time.Minute, Rollback: true, Now: now}

	return r
}

// sick makes objects unhealthy, and late also lets the deadline of a revision pass.
func sick(r *run) { r.installed.health = missing }

func late(r *run) {
	sick(r)

	r.policy.Now = now.Add(5 * time.Minute)
}

// ownObject is an object of the provider's own kind, which waits for its manager.
var ownObject = asks.Held{Object: object.Key{Namespace: "capa-system", Name: "own"}, Own: true}

// staged makes objects wait for the others, which are as healthy as before.
func staged(r *run, waiting ...asks.Held) {
	r.installed.Newest.Wave, r.installed.waiting = new(0), waiting
	r.installed.health = &health.Report{Objects: withWaiting(r.installed.health.Objects, waiting)}
}

// revisions that tests judge.
var (
	replaced = func() state.Revision {
		r := justMade(1, v1alpha2.RevisionSuperseded, former)
		r.Healthy = true

		return r
	}()
	broken = func() state.Revision {
		r := justMade(2, v1alpha2.RevisionFailed, wanted)
		r.Failure = v1alpha2.FailureUnhealthy

		return r
	}()
)

// TestJudge: what becomes of a revision that is not healthy.
func TestJudge(t *testing.T) {
	healthy := justMade(1, v1alpha2.RevisionDeployed, wanted)
	healthy.Healthy = true

	rollback := justMade(3, v1alpha2.RevisionDeployed, former)
	rollback.RollbackTo = 1

	deployed := func() *run { return judgedRun(justMade(1, v1alpha2.RevisionDeployed, wanted)) }
	tooLate := func(problem string) *verdict {
		return &verdict{failure: v1alpha2.FailureUnhealthy, reason: "not healthy within 5m: " + problem}
	}

	for name, test := range map[string]struct {
		r      *run
		change func(*run)
		want   *verdict
	}{
		"one that is healthy":       {deployed(), func(*run) {}, nil},
		"one that was healthy once": {judgedRun(healthy), late, nil},
		"one that becomes healthy":  {deployed(), sick, &verdict{until: now.Add(4*time.Minute + time.Second)}},
		"one that takes too long":   {deployed(), late, tooLate(absent)},
		"one that has failed":       {judgedRun(broken, replaced), late, nil},
		"a rollback":                {judgedRun(rollback, broken, replaced), late, nil},
		"one of another program": {judgedRun(state.Revision{
			ReleaseRevision: v1alpha2.ReleaseRevision{Number: 1, Status: v1alpha2.RevisionDeployed},
		}), late, nil},
		"too long, and spec changed": {
			deployed(), func(r *run) { late(r); r.policy.SpecChanged = true }, &verdict{leave: true},
		},
		"one that cannot become healthy": {
			deployed(), func(r *run) { r.installed.health = hopeless },
			&verdict{
				failure: v1alpha2.FailureFinal,
				reason:  "it cannot become healthy: Deployment manager: cannot be scheduled",
			},
		},
		"one that is not complete": {
			deployed(), func(r *run) { late(r); r.installed.health = &health.Report{}; staged(r) }, tooLate(""),
		},
		"deletions that take long": {deployed(), func(r *run) { late(r); staged(r); r.installed.removing = true }, nil},
		"nothing to delete":        {deployed(), func(r *run) { late(r); r.installed.removing = true }, tooLate(absent)},
		"a paused provider whose objects wait for its manager": {
			deployed(), func(r *run) {
				late(r)

				r.installed.health, r.installed.Newest.Paused = &health.Report{}, true
				staged(r, ownObject)
			}, nil,
		},
		"a paused provider whose other objects are not healthy": {
			deployed(), func(r *run) { late(r); r.installed.Newest.Paused = true; staged(r, ownObject) }, tooLate(absent),
		},
		"the last wave of a revision whose waves together took longer": {
			deployed(), func(r *run) {
				late(r)

				r.installed.Newest.LastTransitionTime.Time = now.Add(5*time.Minute - time.Second)
			}, &verdict{until: now.Add(10 * time.Minute)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.change(test.r)
			NewWithT(t).Expect(test.r.verdict()).To(Equal(test.want))
		})
	}
}

// TestRollback: when a failed revision is rolled back, and what comes before that.
func TestRollback(t *testing.T) {
	for name, test := range map[string]struct {
		change       func(*run)
		rolls, leave bool
	}{
		"a failed revision":         {change: sick, rolls: true},
		"a target that is refused":  {change: func(r *run) { sick(r); r.policy.Refused = map[int]bool{1: true} }},
		"one that became healthy":   {change: func(*run) {}},
		"whose waves are healthy":   {change: func(r *run) { staged(r, ownObject) }},
		"whose webhooks lack a CA":  {change: func(r *run) { r.installed.trust.gates = true }, rolls: true},
		"a policy without rollback": {change: func(r *run) { sick(r); r.policy.Rollback = false }},
		"a changed spec":            {change: func(r *run) { sick(r); r.policy.SpecChanged = true }, leave: true},
		"a request":                 {change: func(r *run) { sick(r); r.policy.Requested = true }, leave: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := judgedRun(broken, replaced)
			test.change(r)

			target, rolls, leave := r.rollbackTarget(state.Rules{Now: now})
			g.Expect(rolls).To(Equal(test.rolls))
			g.Expect(leave).To(Equal(test.leave))

			if rolls {
				g.Expect(target).To(Equal(replaced))
			}
		})
	}
}

// TestMayAdvance: when the next step of a staged revision is taken.
func TestMayAdvance(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*run)
		want   bool
	}{
		"objects wait":                {func(r *run) { staged(r, ownObject) }, true},
		"none wait":                   {func(*run) {}, false},
		"the others are not healthy":  {func(r *run) { sick(r); staged(r, ownObject) }, false},
		"webhooks have lost their CA": {func(r *run) { r.installed.trust.gates = true; staged(r, ownObject) }, false},
		"they need a paused manager":  {func(r *run) { r.installed.Newest.Paused = true; staged(r, ownObject) }, false},
		"all that is left is deleted": {func(r *run) { staged(r); r.installed.removing = true }, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := judgedRun(justMade(1, v1alpha2.RevisionDeployed, wanted))
			test.change(r)
			NewWithT(t).Expect(r.installed.mayAdvance()).To(Equal(test.want))
		})
	}
}

func TestAttemptedDigest(t *testing.T) {
	automatic := justMade(3, v1alpha2.RevisionDeployed, former)
	automatic.RollbackTo = 1

	requested := justMade(3, v1alpha2.RevisionDeployed, rollbackDigest(1, false))
	requested.RollbackTo = 1

	prebuilt := state.Revision{
		ReleaseRevision: v1alpha2.ReleaseRevision{Number: 3, Status: v1alpha2.RevisionDeployed}, Origin: 1,
	}

	for name, test := range map[string]struct {
		newest   state.Revision
		expected string
	}{
		"an upgrade":                      {revision(3, v1alpha2.RevisionDeployed, wanted), wanted},
		"an automatic rollback":           {automatic, wanted},
		"a rollback that was asked for":   {requested, "rollback-1"},
		"a revision of another program's": {prebuilt, wanted},
	} {
		t.Run(name, func(t *testing.T) {
			history := state.History{Revisions: []state.Revision{
				test.newest, justMade(2, v1alpha2.RevisionFailed, wanted), justMade(1, v1alpha2.RevisionSuperseded, former),
			}}
			NewWithT(t).Expect(attemptedDigest(history)).To(Equal(test.expected))
		})
	}
}

// TestRollbackDigest: a rollback that a user asks for is another one while the provider is paused.
func TestRollbackDigest(t *testing.T) {
	g := NewWithT(t)

	for _, paused := range []bool{false, true} {
		rollback := justMade(2, v1alpha2.RevisionDeployed, rollbackDigest(1, paused))
		rollback.RollbackTo = 1
		g.Expect(isAutomaticRollback(rollback)).To(BeFalse())
	}

	g.Expect(rollbackDigest(1, true)).NotTo(Equal(rollbackDigest(1, false)))
	g.Expect(rollbackDigest(1, false)).NotTo(Equal(rollbackDigest(2, false)))
}
