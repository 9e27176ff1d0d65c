package state

import (
	"cmp"
	"fmt"
	"time"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Policy is what the user wants in the states that allow more than one action.
type Policy struct {
	// Retries is how many times a failed attempt is repeated.
	Retries int
	// RetryInterval is how long to wait before the first repetition. Default: MinBackoff.
	RetryInterval time.Duration
	// Timeout is how long an attempt that failed with v1alpha2.FailureUnavailable is repeated before it
	// counts as failed.
	Timeout time.Duration
	// Rollback to the last healthy revision when the desired one fails.
	Rollback bool
	// Paused is true if the desired state runs no managers. Otherwise a paused revision is no target of
	// a rollback.
	Paused bool
	// Refused are the numbers of revisions that must not be rolled back to.
	Refused map[int]bool
	// Revert what other programs did to the release. Without it, their revisions are kept until the
	// user asks for something else.
	Revert bool
	// Existed is true if the release existed when it was last observed.
	Existed bool
	// SpecChanged is true if the user has changed the resource since the last reconcile.
	SpecChanged bool
	// Requested is true if the user requests an attempt now, regardless of retries and waiting
	// times, or has changed the resource since the newest revision that records a Request.
	Requested bool
	Now       time.Time
}

// permits reports whether a rollback may return to a revision.
func (p Policy) permits(r Revision) bool {
	return r.Confirmed() && !p.Refused[r.Number] && (p.Paused || !r.Paused)
}

// Action is what to do with a release.
type Action string

// The actions.
const (
	// None: the release is as desired.
	None Action = "None"
	// Apply the desired state: install, upgrade, or roll back if that is what the user wants.
	Apply Action = "Apply"
	// Rollback to Decision.Revision.
	Rollback Action = "Rollback"
	// Wait until Decision.Until, or until the release changes.
	Wait Action = "Wait"
	// Hold what another program did, until the user asks for something else.
	Hold Action = "Hold"
	// Stop after too many failures, until the user changes something.
	Stop Action = "Stop"
)

// Decision is the next action for a release.
type Decision struct {
	Action Action
	// Revision to roll back to.
	Revision Revision
	// Until is when to decide again.
	Until time.Time
	// Attempts is how many times the desired state has failed so far.
	Attempts int
}

// HoldsUninstalled reports whether another program has uninstalled the release, which is respected.
func (d Decision) HoldsUninstalled(history History) bool {
	newest, exists := history.Newest()
	return d.Action == Hold && (!exists || newest.Status == v1alpha2.RevisionUninstalled)
}

// String returns the decision for logs.
func (d Decision) String() string {
	if d.Action == Rollback {
		return fmt.Sprintf("%s to revision %d", d.Action, d.Revision.Number)
	}

	return string(d.Action)
}

// MinBackoff and MaxBackoff bound the waiting time between attempts, which doubles every time. Policy.RetryInterval may
// be shorter.
const (
	MinBackoff = 5 * time.Second
	MaxBackoff = 10 * time.Minute
)

// Next returns the next action for a release in the observed state, where digest identifies the
// desired state.
func Next(history History, digest string, observed Observed, policy Policy) Decision {
	switch observed.State {
	case InSync:
		return Decision{Action: None}
	case Locked:
		return Decision{Action: Wait, Until: observed.Until}
	case Absent:
		return holdIf(policy.Existed && !policy.SpecChanged && !policy.Revert && !policy.Requested)
	case Uninstalled, Unmanaged:
		return holdIf(history.handled() && !history.overtaken() && !policy.Revert && !policy.Requested)
	case Interrupted:
		return afterInterruption(history, digest, observed, policy)
	case RollbackFailed:
		return afterFailedRollback(history, digest, observed, policy)
	case Failed:
		return afterFailure(history, digest, policy)
	case RolledBack:
		return afterRollback(history, digest, observed.Revision, policy)
	default:
		return Decision{Action: Apply}
	}
}

func holdIf(hold bool) Decision {
	if hold {
		return Decision{Action: Hold}
	}

	return Decision{Action: Apply}
}

// afterInterruption completes a rollback that was interrupted, as long as the desired state is
// still the one that failed. Everything else is applied again.
func afterInterruption(history History, digest string, observed Observed, policy Policy) Decision {
	target, exists := history.Find(observed.Revision.RollbackTo)
	if !exists || !policy.permits(target) || len(history.Attempts(digest)) == 0 {
		return Decision{Action: Apply}
	}

	return Decision{Action: Rollback, Revision: target}
}

// afterFailedRollback tries the rollback again, as long as it takes: what runs until then is neither revision. If its
// target is gone, or must not be rolled back to any more, the only way is forward.
func afterFailedRollback(history History, digest string, observed Observed, policy Policy) Decision {
	since := observed.Revision.LastTransitionTime.Time

	target, exists := history.Find(observed.Revision.RollbackTo)
	if !exists || !policy.permits(target) {
		return retry(Decision{Action: Apply}, history.Attempts(digest), since, policy)
	}

	rollback := Decision{Action: Rollback, Revision: target}

	if observed.Revision.Failure == v1alpha2.FailureUnavailable && !policy.Requested {
		return waitUntil(resumeAt(observed.Revision), rollback, policy)
	}

	if policy.Requested {
		return rollback
	}

	return waitUntil(since.Add(policy.backoff(len(history.failedRollbacks()))), rollback, policy)
}

// afterFailure rolls back before it tries again, so that a healthy revision runs in the meantime.
// A failure that may go away by itself gets the time to do so first.
func afterFailure(history History, digest string, policy Policy) Decision {
	newest, _ := history.Newest()
	attempts := history.Attempts(digest)
	apply := Decision{Action: Apply, Attempts: countAttempts(attempts)}

	if len(attempts) == 0 || policy.Requested {
		return apply
	}

	if newest.Failure == v1alpha2.FailureUnavailable && policy.Now.Before(unavailableSince(attempts).Add(policy.Timeout)) {
		return waitUntil(resumeAt(newest), apply, policy)
	}

	if target, exists := history.RollbackTarget(digest, policy); exists && policy.Rollback {
		return Decision{Action: Rollback, Revision: target, Attempts: apply.Attempts}
	}

	return retry(apply, attempts, newest.LastTransitionTime.Time, policy)
}

// afterRollback tries again once the rollback is complete, so that nothing of what failed is left meanwhile. A wave of
// the rollback that does not become healthy in time holds up nothing.
func afterRollback(history History, digest string, rollback Revision, policy Policy) Decision {
	attempts := history.Attempts(digest)
	deadline := rollback.LastTransitionTime.Add(policy.Timeout)

	if rollback.Staged() && !policy.Requested && policy.Now.Before(deadline) {
		return Decision{Action: Wait, Until: deadline, Attempts: countAttempts(attempts)}
	}

	return retry(Decision{Action: Apply}, attempts, rollback.LastTransitionTime.Time, policy)
}

// unavailableSince returns when the first of the newest attempts, which failed for a passing reason, began.
func unavailableSince(attempts []Revision) time.Time {
	first := attempts[0]

	for _, r := range attempts {
		if r.Failure != v1alpha2.FailureUnavailable {
			break
		}

		first = r
	}

	return first.Time.Time
}

// resumeAt returns when to resume a revision that failed for a passing reason: it waits as long as it has
// tried, so that the wait doubles each time.
func resumeAt(r Revision) time.Time {
	tried := r.LastTransitionTime.Sub(r.Time.Time)

	return r.LastTransitionTime.Add(min(max(tried, MinBackoff), MaxBackoff))
}

// retry returns the decision once the backoff since the last failure is over, and Stop when the
// retries are used up.
func retry(decision Decision, failures []Revision, since time.Time, policy Policy) Decision {
	decision.Attempts = countAttempts(failures)

	switch {
	case policy.Requested:
		return decision
	case decision.Attempts > policy.Retries:
		return Decision{Action: Stop, Attempts: decision.Attempts}
	default:
		return waitUntil(since.Add(policy.backoff(len(failures))), decision, policy)
	}
}

// backoff returns how long to wait after that many failures.
func (p Policy) backoff(failures int) time.Duration {
	return Backoff(cmp.Or(p.RetryInterval, MinBackoff), failures)
}

// Failures returns how often it has failed to deploy the digest since something else was deployed or requested.
func (h History) Failures(digest string) int { return countAttempts(h.Attempts(digest)) }

// countAttempts counts failures, given newest first. Consecutive ones that may go away by
// themselves count as one.
func countAttempts(failures []Revision) int {
	count := 0

	for i, r := range failures {
		consecutive := i > 0 && failures[i-1].Number == r.Number+1
		if r.Failure != v1alpha2.FailureUnavailable || !consecutive {
			count++
		}
	}

	return count
}

func waitUntil(until time.Time, decision Decision, policy Policy) Decision {
	if policy.Now.Before(until) {
		return Decision{Action: Wait, Until: until, Attempts: decision.Attempts}
	}

	return decision
}

// Backoff returns how long to wait after that many attempts: it doubles each time, up to MaxBackoff.
func Backoff(wait time.Duration, attempts int) time.Duration {
	for range attempts - 1 {
		wait = min(2*wait, MaxBackoff)
	}

	return wait
}
