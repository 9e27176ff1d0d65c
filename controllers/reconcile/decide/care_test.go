package decide

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/controllers/reconcile/report"
	"github.com/capstan-project/capstan/controllers/release/state"
)

const (
	wanted = "digest of what is wanted"
	former = "digest of what was wanted before"
)

var now = time.Date(2026, 11, 24, 8, 0, 0, 0, time.UTC)

// revision returns a revision that Capstan made a minute ago.
func revision(number int, status state.Status, digest string) state.Revision {
	created := now.Add(-time.Minute)

	return state.Revision{
		Number: number, Origin: number, Status: status, Digest: digest, Known: state.AnyRecord(),
		Created: created, Changed: created,
	}
}

// installed returns what care depends on for revisions, newest first, after drift and health were looked for. All
// objects are healthy.
func installed(revisions ...state.Revision) Installed {
	in := Installed{
		History: state.History{Revisions: revisions},
		Policy:  state.Policy{Retries: 3, Timeout: 5 * time.Minute, Rollback: true, Now: now},
		Health:  report.Health{Healthy: true, Others: true},
		Drift:   true,
		Done:    []Action{Compare, CheckHealth},
	}
	in.Observed = state.Determine(in.History, AttemptedDigest(in.History), state.Rules{Now: now})

	return in
}

func TestCare(t *testing.T) {
	const deployed, failed, superseded = state.StatusDeployed, state.StatusFailed, state.StatusSuperseded

	healthy := revision(1, deployed, wanted)
	healthy.Healthy = true

	replaced := revision(1, superseded, former)
	replaced.Healthy = true

	broken := revision(2, failed, wanted)
	broken.Failure = state.FailureUnhealthy

	rollback := revision(3, deployed, former)
	rollback.RollbackTo = 1

	unpruned := healthy
	unpruned.Unpruned = true

	late := func(in *Installed) {
		in.Health = report.Health{Message: "manager"}
		in.Policy.Now = now.Add(5 * time.Minute)
	}
	sick := func(in *Installed) { in.Health = report.Health{Message: "manager"} }

	for name, test := range map[string]struct {
		in     Installed
		change func(*Installed)
		want   Step
	}{
		"nothing is left to do": {installed(healthy), func(*Installed) {}, Step{}},
		"what was left is deleted first": {
			installed(unpruned), func(in *Installed) { in.Done = nil },
			Step{Row: "what could not be deleted is deleted", Action: Prune},
		},
		"what was left waits for the last wave": {
			installed(unpruned), func(in *Installed) { in.Done, in.Waiting.Staged = nil, true },
			Step{Row: "drift comes before health", Action: Compare},
		},
		"what cannot be deleted holds nothing up": {
			installed(unpruned), func(in *Installed) { in.Done = []Action{Prune} },
			Step{Row: "drift comes before health", Action: Compare},
		},
		"drift comes before health": {
			installed(healthy), func(in *Installed) { in.Done = nil }, Step{Row: "drift comes before health", Action: Compare},
		},
		"without looking for drift": {
			installed(healthy), func(in *Installed) { in.Drift, in.Done = false, nil },
			Step{Row: "health is checked", Action: CheckHealth},
		},
		"an object that was lost after that": {
			installed(healthy), func(in *Installed) { in.Lost = true },
			Step{Row: "what was lost meanwhile is drift", Action: CompareLost},
		},
		"an object that is still lost": {
			installed(healthy), func(in *Installed) { in.Lost = true; in.Done = append(in.Done, CompareLost) }, Step{},
		},
		"a completed Job": {
			installed(healthy), func(in *Installed) { in.Health.Finished = true },
			Step{Row: "completed Jobs are recorded", Action: MarkFinished},
		},
		"a staged revision": {
			installed(healthy), func(in *Installed) { in.Waiting.Staged = true; in.Health.Healthy = false },
			Step{Row: "a staged revision advances", Action: Advance},
		},
		"a staged revision that is not healthy": {
			installed(healthy), func(in *Installed) { in.Waiting.Staged = true; in.Health = report.Health{} }, Step{},
		},
		"a staged revision of a paused provider": {
			installed(healthy), func(in *Installed) { in.Waiting = Waiting{Staged: true, ForManager: true} }, Step{},
		},
		"a healthy revision": {
			installed(revision(1, deployed, wanted)), func(*Installed) {},
			Step{Row: "a healthy revision is recorded", Action: MarkHealthy},
		},
		"a revision that becomes healthy": {
			installed(revision(1, deployed, wanted)), sick,
			Step{Row: "a revision has a deadline", Until: now.Add(4*time.Minute + time.Second)},
		},
		"a revision that takes too long": {
			installed(revision(1, deployed, wanted)), late,
			Step{
				Row: "a revision has a deadline", Action: MarkFailed, Failure: state.FailureUnhealthy,
				Reason: "not healthy within 5m0s: manager",
			},
		},
		"a revision that cannot become healthy": {
			installed(revision(1, deployed, wanted)),
			func(in *Installed) { in.Health = report.Health{Final: true, Message: "manager"} },
			Step{
				Row: "a revision has a deadline", Action: MarkFailed, Failure: state.FailureFinal,
				Reason: "it cannot become healthy: manager",
			},
		},
		"a revision that was just marked": {
			installed(revision(1, deployed, wanted)), func(in *Installed) { late(in); in.Done = append(in.Done, MarkFailed) },
			Step{},
		},
		"a revision that takes too long, and a changed spec": {
			installed(revision(1, deployed, wanted)), func(in *Installed) { late(in); in.Policy.SpecChanged = true },
			Step{Row: "a revision has a deadline", Action: Leave},
		},
		"deletions that take long": {
			installed(revision(1, deployed, wanted)),
			func(in *Installed) {
				late(in)
				in.Waiting = Waiting{Staged: true, ForDeletions: true}
				in.Done = append(in.Done, Advance)
			},
			Step{},
		},
		"a paused provider whose objects wait for its manager": {
			installed(revision(1, deployed, wanted)),
			func(in *Installed) {
				late(in)
				in.Health.Others = true
				in.Waiting = Waiting{Staged: true, ForManager: true}
			},
			Step{},
		},
		"a paused provider whose other objects are not healthy in time": {
			installed(revision(1, deployed, wanted)),
			func(in *Installed) { late(in); in.Waiting = Waiting{Staged: true, ForManager: true} },
			Step{
				Row: "a revision has a deadline", Action: MarkFailed, Failure: state.FailureUnhealthy,
				Reason: "not healthy within 5m0s: manager",
			},
		},
		"a revision with nothing to delete that takes too long": {
			installed(revision(1, deployed, wanted)), func(in *Installed) { late(in); in.Waiting.ForDeletions = true },
			Step{
				Row: "a revision has a deadline", Action: MarkFailed, Failure: state.FailureUnhealthy,
				Reason: "not healthy within 5m0s: manager",
			},
		},
		"a rollback that takes too long": {installed(rollback, broken, replaced), late, Step{}},
		"another program's revision that takes too long": {
			installed(state.Revision{Number: 1, Status: deployed}), late, Step{},
		},
		"a failed revision": {
			installed(broken, replaced), sick,
			Step{Row: "a failed revision is rolled back", Action: CheckTarget, Target: replaced},
		},
		"a failed revision whose target was checked": {
			installed(broken, replaced), func(in *Installed) { sick(in); in.Allowed = 1 },
			Step{Row: "a failed revision is rolled back", Action: Rollback, Target: replaced},
		},
		"a failed revision whose target is refused": {
			installed(broken, replaced), func(in *Installed) { sick(in); in.Policy.Refused = map[int]bool{1: true} }, Step{},
		},
		"a rollback that was tried": {
			installed(broken, replaced),
			func(in *Installed) { sick(in); in.Allowed = 1; in.Done = append(in.Done, Rollback) }, Step{},
		},
		"a failed revision that has become healthy": {installed(broken, replaced), func(*Installed) {}, Step{}},
		"a failed revision whose applied waves have become healthy": {
			installed(broken, replaced), func(in *Installed) { in.Health = report.Health{Others: true} }, Step{},
		},
		"the last wave of a revision whose waves together took longer": {
			installed(revision(1, deployed, wanted)),
			func(in *Installed) {
				late(in)
				in.History.Revisions[0].Changed = now.Add(5*time.Minute - time.Second)
			},
			Step{Row: "a revision has a deadline", Until: now.Add(10 * time.Minute)},
		},
		"a failed revision, and a changed spec": {
			installed(broken, replaced), func(in *Installed) { sick(in); in.Policy.SpecChanged = true },
			Step{Row: "a failed revision is rolled back", Action: Leave},
		},
		"a failed revision, and a request": {
			installed(broken, replaced), func(in *Installed) { sick(in); in.Policy.Requested = true },
			Step{Row: "a failed revision is rolled back", Action: Leave},
		},
		"a failed revision without rollbacks": {
			installed(broken, replaced), func(in *Installed) { sick(in); in.Policy.Rollback = false }, Step{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.change(&test.in)
			NewWithT(t).Expect(Care(test.in)).To(Equal(test.want))
		})
	}
}

func TestAttemptedDigest(t *testing.T) {
	automatic := revision(3, state.StatusDeployed, former)
	automatic.RollbackTo = 1

	requested := revision(3, state.StatusDeployed, RollbackDigest(1, false))
	requested.RollbackTo = 1

	prebuilt := state.Revision{Number: 3, Origin: 1, Status: state.StatusDeployed}

	for name, test := range map[string]struct {
		newest   state.Revision
		expected string
	}{
		"an upgrade":                      {revision(3, state.StatusDeployed, wanted), wanted},
		"an automatic rollback":           {automatic, wanted},
		"a rollback that was asked for":   {requested, "rollback-1"},
		"a revision of another program's": {prebuilt, wanted},
	} {
		t.Run(name, func(t *testing.T) {
			history := state.History{Revisions: []state.Revision{
				test.newest, revision(2, state.StatusFailed, wanted), revision(1, state.StatusSuperseded, former),
			}}
			NewWithT(t).Expect(AttemptedDigest(history)).To(Equal(test.expected))
		})
	}
}

// TestRollbackDigest: a rollback that a user asks for is another one while the provider is paused.
func TestRollbackDigest(t *testing.T) {
	g := NewWithT(t)

	for _, paused := range []bool{false, true} {
		rollback := revision(2, state.StatusDeployed, RollbackDigest(1, paused))
		rollback.RollbackTo = 1
		g.Expect(isAutomaticRollback(rollback)).To(BeFalse())
	}

	g.Expect(RollbackDigest(1, true)).NotTo(Equal(RollbackDigest(1, false)))
	g.Expect(RollbackDigest(1, false)).NotTo(Equal(RollbackDigest(2, false)))
}
