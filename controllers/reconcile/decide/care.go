// Package decide decides, from what a reconcile has read, what becomes of a revision, which version an automatic
// upgrade has, and whether the release is what its resource asks for. Its functions are pure: the time is a value.
package decide

import (
	"fmt"
	"time"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/reconcile/report"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// Installed is what the newest revision is judged by, after its health was read.
type Installed struct {
	History state.History
	// Observed is the state of the release, compared with what was attempted last.
	Observed state.Observed
	Policy   state.Policy
	Health   report.Health
	Waiting  Waiting
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

func (in Installed) newest() state.Revision {
	newest, _ := in.History.Newest()
	return newest
}

// Healthy reports whether all objects are healthy, and the revision is complete.
func (in Installed) Healthy() bool { return in.Health.Healthy && !in.Waiting.Staged }

// AwaitsHealth reports whether the operator has applied the revision, and it was never seen healthy.
func (in Installed) AwaitsHealth() bool {
	newest := in.newest()
	return newest.Ours() && newest.Status == v1alpha2.RevisionDeployed && !newest.Healthy
}

// MayAdvance reports whether the next step of a staged revision can be taken.
func (in Installed) MayAdvance() bool {
	return in.Waiting.Staged && !in.Waiting.ForManager && in.Health.Others
}

// mayTakeLonger reports whether the revision works, but cannot be completed yet: the provider is paused, so
// that its manager does not run, or objects are being deleted with what they represent.
func (in Installed) mayTakeLonger() bool {
	return in.Waiting.Staged && (in.Waiting.ForManager && in.Health.Others || in.Waiting.ForDeletions)
}

// Verdict is what becomes of a revision that is not healthy.
type Verdict struct {
	// Until is the deadline, if the revision still has time.
	Until time.Time
	// Leave leaves it to the change, which may replace it.
	Leave bool
	// Failure is why it has failed otherwise, and Reason says so.
	Failure v1alpha2.RevisionFailure
	Reason  string
}

// Judge returns what becomes of a revision that has not become healthy yet; nil if it need not. A changed spec comes
// before a failure: it may be the fix. A revision that was rolled back to was healthy before, and there is nothing
// better to roll back to.
func Judge(in Installed) *Verdict {
	newest, policy := in.newest(), in.Policy
	if !in.AwaitsHealth() || in.Healthy() || isAutomaticRollback(newest) || in.mayTakeLonger() {
		return nil
	}

	// An attempt that was resumed was created long before it was applied.
	deadline := newest.LastTransitionTime.Add(policy.Timeout)

	switch {
	case !in.Health.Final && !policy.Now.After(deadline):
		return &Verdict{Until: deadline.Add(time.Second)} // times of the API server are in whole seconds
	case policy.SpecChanged:
		return &Verdict{Leave: true}
	case in.Health.Final:
		return &Verdict{Failure: v1alpha2.FailureFinal, Reason: "it cannot become healthy: " + in.Health.Message}
	}

	return &Verdict{
		Failure: v1alpha2.FailureUnhealthy,
		Reason:  fmt.Sprintf("not healthy within %s: %s", policy.Timeout, in.Health.Message),
	}
}

// Return is whether a failed revision is rolled back.
type Return struct {
	// Rolls is set if it is, and Target is then the last healthy revision that is not refused.
	Rolls  bool
	Target state.Revision
	// Leave is set if it would be, and a changed spec or a requested retry comes first.
	Leave bool
}

// Rollback decides whether the policy rolls a failed revision back, or finishes a rollback that was interrupted.
func Rollback(in Installed) Return {
	next := func(requested bool) state.Decision {
		policy := in.Policy
		policy.Requested = requested

		return state.Next(in.History, AttemptedDigest(in.History), in.Observed, policy)
	}

	decision := next(in.Policy.Requested || recovered(in.newest(), in.Health.Others))
	rolls := decision.Action == state.Rollback

	return Return{
		Rolls:  rolls && !in.Policy.SpecChanged,
		Target: decision.Revision,
		Leave:  rolls && in.Policy.SpecChanged || !rolls && in.Policy.Requested && next(false).Action == state.Rollback,
	}
}
