package decide

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/reconcile/report"
	"github.com/capstan-project/capstan/controllers/release/state"
)

const (
	wanted = "digest of what is wanted"
	former = "digest of what was wanted before"
)

var now = time.Date(2026, 11, 24, 8, 0, 0, 0, time.UTC)

// revision returns a revision that Capstan made a minute ago.
func revision(number int, status v1alpha2.RevisionStatus, digest string) state.Revision {
	created := now.Add(-time.Minute)

	return state.Revision{
		ReleaseRevision: v1alpha2.ReleaseRevision{
			Number: number, Status: status, ContentDigest: digest, Digest: "v1:known",
			Time: metav1.NewTime(created), LastTransitionTime: metav1.NewTime(created),
		},
		Origin: number,
	}
}

// installed returns what revisions, newest first, are judged by. All objects are healthy.
func installed(revisions ...state.Revision) Installed {
	in := Installed{
		History: state.History{Revisions: revisions},
		Policy:  state.Policy{Retries: 3, Timeout: 5 * time.Minute, Rollback: true, Now: now},
		Health:  report.Health{Healthy: true, Others: true},
	}
	in.Observed = state.Determine(in.History, AttemptedDigest(in.History), state.Rules{Now: now})

	return in
}

// sick makes objects unhealthy, and late also lets the deadline of a revision pass.
func sick(in *Installed) { in.Health = report.Health{Message: "manager"} }

func late(in *Installed) {
	sick(in)

	in.Policy.Now = now.Add(5 * time.Minute)
}

// revisions that tests judge.
var (
	replaced = func() state.Revision {
		r := revision(1, v1alpha2.RevisionSuperseded, former)
		r.Healthy = true

		return r
	}()
	broken = func() state.Revision {
		r := revision(2, v1alpha2.RevisionFailed, wanted)
		r.Failure = v1alpha2.FailureUnhealthy

		return r
	}()
)

// TestJudge: what becomes of a revision that is not healthy.
func TestJudge(t *testing.T) {
	healthy := revision(1, v1alpha2.RevisionDeployed, wanted)
	healthy.Healthy = true

	rollback := revision(3, v1alpha2.RevisionDeployed, former)
	rollback.RollbackTo = 1

	deployed := func() Installed { return installed(revision(1, v1alpha2.RevisionDeployed, wanted)) }
	tooLate := &Verdict{Failure: v1alpha2.FailureUnhealthy, Reason: "not healthy within 5m0s: manager"}

	for name, test := range map[string]struct {
		in     Installed
		change func(*Installed)
		want   *Verdict
	}{
		"one that is healthy":       {deployed(), func(*Installed) {}, nil},
		"one that was healthy once": {installed(healthy), late, nil},
		"one that becomes healthy":  {deployed(), sick, &Verdict{Until: now.Add(4*time.Minute + time.Second)}},
		"one that takes too long":   {deployed(), late, tooLate},
		"one that has failed":       {installed(broken, replaced), late, nil},
		"a rollback":                {installed(rollback, broken, replaced), late, nil},
		"one of another program": {installed(state.Revision{
			ReleaseRevision: v1alpha2.ReleaseRevision{Number: 1, Status: v1alpha2.RevisionDeployed},
		}), late, nil},
		"too long, and spec changed": {
			deployed(), func(in *Installed) { late(in); in.Policy.SpecChanged = true }, &Verdict{Leave: true},
		},
		"one that cannot become healthy": {
			deployed(), func(in *Installed) { in.Health = report.Health{Final: true, Message: "manager"} },
			&Verdict{Failure: v1alpha2.FailureFinal, Reason: "it cannot become healthy: manager"},
		},
		"one that is not complete": {
			deployed(), func(in *Installed) { late(in); in.Health.Healthy, in.Waiting.Staged = true, true }, tooLate,
		},
		"deletions that take long": {
			deployed(), func(in *Installed) { late(in); in.Waiting = Waiting{Staged: true, ForDeletions: true} }, nil,
		},
		"nothing to delete": {deployed(), func(in *Installed) { late(in); in.Waiting.ForDeletions = true }, tooLate},
		"a paused provider whose objects wait for its manager": {
			deployed(), func(in *Installed) {
				late(in)
				in.Health.Others, in.Waiting = true, Waiting{Staged: true, ForManager: true}
			}, nil,
		},
		"a paused provider whose other objects are not healthy": {
			deployed(), func(in *Installed) { late(in); in.Waiting = Waiting{Staged: true, ForManager: true} }, tooLate,
		},
		"the last wave of a revision whose waves together took longer": {
			deployed(), func(in *Installed) {
				late(in)
				in.History.Revisions[0].LastTransitionTime.Time = now.Add(5*time.Minute - time.Second)
			}, &Verdict{Until: now.Add(10 * time.Minute)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.change(&test.in)
			NewWithT(t).Expect(Judge(test.in)).To(Equal(test.want))
		})
	}
}

// TestRollback: when a failed revision is rolled back, and what comes before that.
func TestRollback(t *testing.T) {
	rolls, stays := Return{Rolls: true, Target: replaced}, Return{}

	for name, test := range map[string]struct {
		change func(*Installed)
		want   Return
	}{
		"a failed revision":         {sick, rolls},
		"a target that is refused":  {func(in *Installed) { sick(in); in.Policy.Refused = map[int]bool{1: true} }, stays},
		"one that became healthy":   {func(*Installed) {}, stays},
		"whose waves are healthy":   {func(in *Installed) { in.Health = report.Health{Others: true} }, stays},
		"a policy without rollback": {func(in *Installed) { sick(in); in.Policy.Rollback = false }, stays},
		"a changed spec": {
			func(in *Installed) { sick(in); in.Policy.SpecChanged = true }, Return{Target: replaced, Leave: true},
		},
		"a request": {func(in *Installed) { sick(in); in.Policy.Requested = true }, Return{Leave: true}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := installed(broken, replaced)
			test.change(&in)

			got := Rollback(in)
			if !got.Rolls && !test.want.Rolls {
				got.Target, test.want.Target = state.Revision{}, state.Revision{}
			}

			g.Expect(got).To(Equal(test.want))
		})
	}
}

// TestMayAdvance: when the next step of a staged revision is taken.
func TestMayAdvance(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Installed)
		want   bool
	}{
		"objects wait":                {func(in *Installed) { in.Waiting.Staged = true; in.Health.Healthy = false }, true},
		"none wait":                   {func(*Installed) {}, false},
		"the others are not healthy":  {func(in *Installed) { in.Waiting.Staged = true; in.Health.Others = false }, false},
		"they need a paused manager":  {func(in *Installed) { in.Waiting = Waiting{Staged: true, ForManager: true} }, false},
		"all that is left is deleted": {func(in *Installed) { in.Waiting = Waiting{Staged: true, ForDeletions: true} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			in := installed(revision(1, v1alpha2.RevisionDeployed, wanted))
			test.change(&in)
			NewWithT(t).Expect(in.MayAdvance()).To(Equal(test.want))
		})
	}
}

func TestAttemptedDigest(t *testing.T) {
	automatic := revision(3, v1alpha2.RevisionDeployed, former)
	automatic.RollbackTo = 1

	requested := revision(3, v1alpha2.RevisionDeployed, RollbackDigest(1, false))
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
				test.newest, revision(2, v1alpha2.RevisionFailed, wanted), revision(1, v1alpha2.RevisionSuperseded, former),
			}}
			NewWithT(t).Expect(AttemptedDigest(history)).To(Equal(test.expected))
		})
	}
}

// TestRollbackDigest: a rollback that a user asks for is another one while the provider is paused.
func TestRollbackDigest(t *testing.T) {
	g := NewWithT(t)

	for _, paused := range []bool{false, true} {
		rollback := revision(2, v1alpha2.RevisionDeployed, RollbackDigest(1, paused))
		rollback.RollbackTo = 1
		g.Expect(isAutomaticRollback(rollback)).To(BeFalse())
	}

	g.Expect(RollbackDigest(1, true)).NotTo(Equal(RollbackDigest(1, false)))
	g.Expect(RollbackDigest(1, false)).NotTo(Equal(RollbackDigest(2, false)))
}
