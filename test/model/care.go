package model

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/capstan-project/capstan/controllers/release/state"
)

// care is what the operator does for the newest revision.
func (r *reconcile) care(newest Record) []request {
	if newest.deployed() && r.defect != IgnoresDrift {
		if plan := slices.Concat(r.prune(newest), r.correct(newest)); len(plan) > 0 {
			return plan
		}
	}

	awaitsHealth := newest.Ours() && newest.deployed() && !newest.Healthy

	if awaitsHealth && r.healthy {
		return []request{{send: func() bool {
			r.update(newest.Number, func(stored *Record) { stored.Healthy = true })
			return true
		}}}
	}

	if !r.healthy {
		r.wakeAt(r.changed.Add(startup))
	}

	if awaitsHealth && !isAutomaticRollback(newest.Revision) {
		deadline := newest.Changed.Add(Timeout)

		switch {
		case !r.policy.Now.After(deadline):
			r.wakeAt(deadline.Add(time.Second))
		case r.policy.SpecChanged:
			r.deferred = true
		default:
			return []request{r.fail(newest, state.FailureUnhealthy)}
		}
	}

	return r.rollBack()
}

// prune returns the requests that delete what the revision has left, because it could not be deleted for a
// passing reason.
func (r *reconcile) prune(newest Record) []request {
	if !newest.Unpruned {
		return nil
	}

	return append(r.remove(newest.Objects()), request{send: func() bool {
		r.update(newest.Number, func(stored *Record) { stored.Unpruned = false })
		return true
	}})
}

// correct returns the requests that correct drift. The operator makes them right after it has checked that
// no other program has made a revision.
func (r *reconcile) correct(newest Record) []request {
	var plan []request

	for name, o := range byName(newest.Objects()) {
		if r.objects[name] != o {
			plan = append(plan, request{send: func() bool {
				if r.newest() == newest.Number {
					r.put(name, o)
				}

				return true
			}})
		}
	}

	return plan
}

// rollBack rolls a failed revision back, if the policy says so. Revisions whose managers cannot convert
// what is stored are ruled out.
func (r *reconcile) rollBack() []request {
	digest := attemptedDigest(r.history)
	observed := r.determine(digest)
	r.policy.Refused = map[int]bool{}

	for {
		decision := state.Next(r.history, digest, observed, r.carePolicy())
		if decision.Action != state.Rollback || r.policy.SpecChanged {
			return nil
		}

		target, _ := r.find(decision.Revision.Number)

		if seen := r.Snapshot(); !seen.convertible(target.Content.Version) && r.defect != ReturnsUnchecked {
			r.policy.Refused[target.Number] = true
			continue
		}

		return r.act(action{
			content: target.Content, digest: target.Digest, rollbackTo: target.Number, observed: observed,
		})
	}
}

// carePolicy returns the policy for care. A failed revision that has become healthy after all is not
// rolled back.
func (r *reconcile) carePolicy() state.Policy {
	policy := r.policy
	policy.Requested = policy.Requested || r.recovered()

	return policy
}

// changePolicy returns the policy for the change.
func (r *reconcile) changePolicy() state.Policy {
	policy := r.policy
	policy.Requested = r.asksAgain() || r.recovered()

	if r.defect == HoldsByDigest && r.digestChanged() {
		policy.Requested = true
	}

	return policy
}

// asksAgain reports whether the resource asks for something since the newest revision that records a
// request.
func (r *reconcile) asksAgain() bool {
	last, recorded := r.history.LastRequest()
	if !recorded {
		return r.policy.Requested || r.policy.SpecChanged && len(r.records) > 0
	}

	return last.Request != r.asked()
}

// digestChanged reports whether the operator's newest revision was created from something else.
func (r *reconcile) digestChanged() bool {
	return len(r.records) > 0 && attemptedDigest(r.history) != digest(r.content)
}

// asked returns what the resource asks for.
func (r *reconcile) asked() state.Request {
	return state.Request{
		Generation: int64(r.resource.generation), RequestedAt: strconv.Itoa(r.resource.request),
	}
}

// recovered reports whether a failed revision has become healthy after all.
func (r *reconcile) recovered() bool {
	newest, _ := r.history.Newest()

	return newest.Ours() && newest.Failure == state.FailureUnhealthy && newest.Status == state.StatusFailed && r.healthy
}

// determine returns the state of the release.
func (r *reconcile) determine(digest string) state.Observed {
	return state.Determine(r.history, digest, state.Rules{
		Holder: r.process.name, LockTimeout: 5 * time.Minute, Now: r.policy.Now,
	})
}

// attemptedDigest returns the digest of what the operator last tried to install.
func attemptedDigest(history state.History) string {
	for _, revision := range history.Revisions {
		if revision.Ours() && !isAutomaticRollback(revision) {
			return revision.Digest
		}
	}

	return ""
}

// isAutomaticRollback reports whether the operator rolled back without being asked.
func isAutomaticRollback(r state.Revision) bool {
	return r.RollbackTo != 0 && !strings.HasPrefix(r.Digest, "rollback-")
}
