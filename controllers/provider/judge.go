package provider

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// awaitsHealth reports whether the operator has applied the newest revision, and it was never seen healthy.
func (i *installed) awaitsHealth() bool {
	return i.Newest.Ours() && i.Newest.Status == v1alpha2.RevisionDeployed && !i.Newest.Healthy
}

// mayAdvance reports whether the next step of a staged revision can be taken.
func (i *installed) mayAdvance() bool {
	return i.isStaged() && !i.needsPausedManager() && i.othersHealthy()
}

// mayTakeLonger reports whether the revision works, but cannot be completed yet: the provider is paused, so
// that its manager does not run, or objects are being deleted with what they represent.
func (i *installed) mayTakeLonger() bool {
	return i.isStaged() && (i.needsPausedManager() && i.othersHealthy() || i.removing)
}

// recovered reports whether a failed revision has become healthy after all, as far as it was applied: the next attempt
// applies the waves that are left.
func (i *installed) recovered() bool {
	unhealthy := i.Newest.Failure == v1alpha2.FailureUnhealthy || i.Newest.Failure == v1alpha2.FailureFinal
	return i.Newest.Ours() && i.Newest.Status == v1alpha2.RevisionFailed && unhealthy && i.othersHealthy()
}

// verdict is what becomes of a revision that is not healthy.
type verdict struct {
	// until is the deadline, if the revision still has time.
	until time.Time
	// leave leaves it to the change, which may replace it.
	leave bool
	// failure is why it has failed otherwise, and reason says so.
	failure v1alpha2.RevisionFailure
	reason  string
}

// verdict returns what becomes of a revision that has not become healthy yet; nil if it need not. A changed spec comes
// before a failure: it may be the fix. A revision that was rolled back to was healthy before, and there is nothing
// better to roll back to.
func (r *run) verdict() *verdict {
	newest := r.installed.Newest

	waits := r.installed.awaitsHealth() && !r.installed.healthy() && !r.installed.mayTakeLonger()
	if !waits || isAutomaticRollback(newest) {
		return nil
	}

	// An attempt that was resumed was created long before it was applied.
	deadline := newest.LastTransitionTime.Add(r.policy.Timeout)
	final := r.installed.health.Verdict() == health.Stop

	switch {
	case !final && !r.policy.Now.After(deadline):
		return &verdict{until: deadline.Add(time.Second)} // times of the API server are in whole seconds
	case r.policy.SpecChanged:
		return &verdict{leave: true}
	case final:
		return &verdict{
			failure: v1alpha2.FailureFinal, reason: "it cannot become healthy: " + r.installed.unhealthy(),
		}
	}

	return &verdict{
		failure: v1alpha2.FailureUnhealthy,
		reason:  fmt.Sprintf("not healthy within %s: %s", duration.HumanDuration(r.policy.Timeout), r.installed.unhealthy()),
	}
}

// rollbackTarget returns the last healthy revision that is not refused if the policy rolls a failed revision back to
// it, or finishes a rollback that was interrupted. A changed spec or a requested retry comes first: the revision is
// then left to the change. The rules are those for the state of the release.
func (r *run) rollbackTarget(rules state.Rules) (target state.Revision, rolls, leave bool) {
	history := r.installed.History
	digest := attemptedDigest(history)
	observed := state.Determine(history, digest, rules)

	next := func(requested bool) state.Decision {
		policy := r.policy
		policy.Requested = requested

		return state.Next(history, digest, observed, policy)
	}

	decision := next(r.policy.Requested || r.installed.recovered())
	if decision.Action == state.Rollback {
		return decision.Revision, !r.policy.SpecChanged, r.policy.SpecChanged
	}

	return state.Revision{}, false, r.policy.Requested && next(false).Action == state.Rollback
}
