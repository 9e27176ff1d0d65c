// Package decide decides what a reconcile does. Its functions are pure: they take what was seen, as plain values with
// the time in them, and return the next step. Each rule is a row of a list.
package decide

import (
	"fmt"
	"slices"
	"time"

	"github.com/capstan-project/capstan/controllers/reconcile/report"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// Action is what a reconcile does next with what is installed.
type Action string

// The actions of care.
const (
	// Nothing is left to do.
	Nothing Action = ""
	// Prune deletes what the revision has left because it could not be deleted for a passing reason.
	Prune Action = "Prune"
	// Compare compares the objects with the revision, and corrects those that differ.
	Compare Action = "Compare"
	// CompareLost compares them again, because an object was lost meanwhile.
	CompareLost Action = "CompareLost"
	// CheckHealth reads the health of the objects.
	CheckHealth Action = "CheckHealth"
	// MarkFinished records which Jobs have completed.
	MarkFinished Action = "MarkFinished"
	// Advance takes the next step with a staged revision.
	Advance Action = "Advance"
	// MarkHealthy records that the revision was healthy.
	MarkHealthy Action = "MarkHealthy"
	// MarkFailed records that the revision has failed.
	MarkFailed Action = "MarkFailed"
	// Leave leaves a failed revision to the change, which may replace it.
	Leave Action = "Leave"
	// CheckTarget asks whether the provider may return to Step.Target.
	CheckTarget Action = "CheckTarget"
	// Rollback returns to Step.Target.
	Rollback Action = "Rollback"
)

// Step is what a reconcile does next.
type Step struct {
	// Row is the name of the rule that decided.
	Row    string
	Action Action
	// Failure and Reason of MarkFailed.
	Failure state.Failure
	Reason  string
	// Target is the revision of CheckTarget and Rollback.
	Target state.Revision
	// Until is when to decide again if nothing is left to do; zero if events tell.
	Until time.Time
	// Result of End, and of what ended the change for Block.
	Result report.Result
	// Selection is the version that an automatic upgrade results in.
	Selection Selection
}

// Installed is what care depends on: the release, and what this reconcile has done with its newest revision.
type Installed struct {
	History state.History
	// Observed is the state of the release, compared with what was attempted last.
	Observed state.Observed
	Policy   state.Policy
	Health   report.Health
	Waiting  Waiting
	// Drift is set if objects are compared with the revision.
	Drift bool
	// Lost is set if an object is missing that existed when the objects were compared.
	Lost bool
	// Done are the actions that were taken with the newest revision. Compare and CheckHealth are repeated after the
	// revision has changed.
	Done []Action
	// Allowed is the number of a revision that the provider may return to, if that was asked. Policy.Refused are those
	// that it must not return to.
	Allowed int
}

// Waiting is what a staged revision still has to do.
type Waiting struct {
	// Staged is set while objects have to be applied or deleted.
	Staged bool
	// ForManager is set if the next step needs the provider's own manager, and the provider is paused.
	ForManager bool
	// ForDeletions is set while all that is left to do is to wait for deletions.
	ForDeletions bool
}

// careRules are the rules of care. The first one that decides counts.
var careRules = []rule[Installed]{
	{"what could not be deleted is deleted", prune},
	{"drift comes before health", compare},
	{"health is checked", checkHealth},
	{"what was lost meanwhile is drift", compareLost},
	{"completed Jobs are recorded", markFinished},
	{"a staged revision advances", advance},
	{"a healthy revision is recorded", markHealthy},
	{"a revision has a deadline", markFailed},
	{"a failed revision is rolled back", rollBack},
}

// Care returns the next step of care for the newest revision of a release.
func Care(in Installed) Step {
	step, _ := first(careRules, in)
	return step
}

func (in Installed) newest() state.Revision {
	newest, _ := in.History.Newest()
	return newest
}

func (in Installed) deployed() bool { return in.newest().Status == state.StatusDeployed }

func (in Installed) did(action Action) bool {
	return slices.Contains(in.Done, action)
}

// take returns the step of an action unless it was taken already.
func (in Installed) take(action Action, when bool) (Step, bool) {
	return Step{Action: action}, when && !in.did(action)
}

// prune: what a staged revision does not have is deleted after its last wave.
func prune(in Installed) (Step, bool) {
	return in.take(Prune, in.newest().Unpruned && in.deployed() && !in.Waiting.Staged)
}

func compare(in Installed) (Step, bool) { return in.take(Compare, in.Drift) }

func checkHealth(in Installed) (Step, bool) { return in.take(CheckHealth, true) }

func compareLost(in Installed) (Step, bool) { return in.take(CompareLost, in.Drift && in.Lost) }

func markFinished(in Installed) (Step, bool) { return in.take(MarkFinished, in.Health.Finished) }

func advance(in Installed) (Step, bool) {
	return in.take(Advance, in.Waiting.Staged && !in.Waiting.ForManager && in.Health.Others)
}

func markHealthy(in Installed) (Step, bool) {
	return in.take(MarkHealthy, in.awaitsHealth() && in.healthy())
}

// healthy reports whether all objects are healthy, and the revision is complete.
func (in Installed) healthy() bool { return in.Health.Healthy && !in.Waiting.Staged }

// awaitsHealth reports whether the operator has applied the revision, and it was never seen healthy.
func (in Installed) awaitsHealth() bool {
	newest := in.newest()
	marked := in.did(MarkHealthy) || in.did(MarkFailed)

	return newest.Ours() && in.deployed() && !newest.Healthy && !marked
}

// mayTakeLonger reports whether the revision works, but cannot be completed yet: the provider is paused, so
// that its manager does not run, or objects are being deleted with what they represent.
func (in Installed) mayTakeLonger() bool {
	return in.Waiting.Staged && (in.Waiting.ForManager && in.Health.Others || in.Waiting.ForDeletions)
}

// markFailed fails a revision that has not become healthy in time, or cannot. A changed spec comes first: it may be
// the fix. A revision that was rolled back to was healthy before, and there is nothing better to roll back to.
func markFailed(in Installed) (Step, bool) {
	newest, policy := in.newest(), in.Policy
	if !in.awaitsHealth() || in.healthy() || isAutomaticRollback(newest) || in.mayTakeLonger() {
		return Step{}, false
	}

	// An attempt that was resumed was created long before it was applied.
	deadline := newest.Changed.Add(policy.Timeout)

	switch {
	case !in.Health.Final && !policy.Now.After(deadline):
		return Step{Until: deadline.Add(time.Second)}, true // times of the API server are in whole seconds
	case policy.SpecChanged:
		return in.take(Leave, true)
	case in.Health.Final:
		return Step{
			Action: MarkFailed, Failure: state.FailureFinal, Reason: "it cannot become healthy: " + in.Health.Message,
		}, true
	}

	return Step{
		Action: MarkFailed, Failure: state.FailureUnhealthy,
		Reason: fmt.Sprintf("not healthy within %s: %s", policy.Timeout, in.Health.Message),
	}, true
}

// rollBack rolls a failed revision back to the last healthy one that the provider may return to, if the policy says
// so, or finishes a rollback that was interrupted. A changed spec and a requested retry come first.
func rollBack(in Installed) (Step, bool) {
	digest := AttemptedDigest(in.History)
	policy := in.Policy
	policy.Requested = policy.Requested || recovered(in.newest(), in.Health.Others)

	decision := state.Next(in.History, digest, in.Observed, policy)

	switch {
	case decision.Action != state.Rollback:
		policy = in.Policy
		policy.Requested = false
		prevented := in.Policy.Requested && state.Next(in.History, digest, in.Observed, policy).Action == state.Rollback

		return in.take(Leave, prevented)
	case policy.SpecChanged:
		return in.take(Leave, true)
	case in.Allowed != decision.Revision.Number && !in.did(Rollback):
		return Step{Action: CheckTarget, Target: decision.Revision}, true
	}

	return Step{Action: Rollback, Target: decision.Revision}, !in.did(Rollback)
}
