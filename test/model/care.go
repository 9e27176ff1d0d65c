package model

import (
	"strconv"
	"time"

	"github.com/capstan-project/capstan/controllers/reconcile/decide"
	"github.com/capstan-project/capstan/controllers/reconcile/report"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// care does what the operator decides for the newest revision, until that takes requests or nothing is left to do.
func (r *reconcile) care(newest Record) []request {
	for {
		step := decide.Care(r.seen(newest))
		r.done = append(r.done, step.Action)

		switch step.Action {
		case decide.Nothing:
			r.wakeAt(step.Until)

			if !r.healthy {
				r.wakeAt(r.changed.Add(startup))
			}

			return nil
		case decide.Leave:
			r.deferred = true
		case decide.CheckTarget:
			r.checkTarget(step.Target)
		default:
			if plan := r.take(step, newest); len(plan) > 0 {
				return plan
			}
		}
	}
}

// seen returns what care goes by.
func (r *reconcile) seen(newest Record) decide.Installed {
	return decide.Installed{
		History:  r.history,
		Observed: state.Determine(r.history, decide.AttemptedDigest(r.history), r.rules()),
		Policy:   r.policy,
		Health:   report.Health{Healthy: r.healthy, Others: r.healthy},
		Drift:    newest.deployed() && r.defect != IgnoresDrift,
		Done:     r.done,
		Allowed:  r.allowed,
	}
}

// checkTarget finds out whether the provider may return to a revision: not if its managers cannot convert what is
// stored.
func (r *reconcile) checkTarget(target state.Revision) {
	record, _ := r.find(target.Number)

	if seen := r.Snapshot(); seen.convertible(record.Content.Version) || r.defect == ReturnsUnchecked {
		r.allowed = target.Number
		return
	}

	r.policy.Refused[target.Number] = true
}

// take returns the requests of a step.
func (r *reconcile) take(step decide.Step, newest Record) []request {
	switch step.Action {
	case decide.Prune:
		return r.prune(newest)
	case decide.Compare:
		return r.correct(newest)
	case decide.MarkHealthy:
		return []request{{send: func() bool {
			r.update(newest.Number, func(stored *Record) { stored.Healthy = true })
			return true
		}}}
	case decide.MarkFailed:
		return []request{r.fail(newest, step.Failure)}
	case decide.Rollback:
		target, _ := r.find(step.Target.Number)
		digest := decide.AttemptedDigest(r.history)

		return r.act(action{
			content: target.Content, digest: target.Digest, rollbackTo: target.Number,
			observed: state.Determine(r.history, digest, r.rules()),
		})
	default: // the health of objects is known, there are no Jobs, and nothing waits for others
		return nil
	}
}

// prune returns the requests that delete what the revision has left, because it could not be deleted for a
// passing reason.
func (r *reconcile) prune(newest Record) []request {
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

// asked returns what the resource asks for.
func (r *reconcile) asked() state.Request {
	return state.Request{
		Generation: int64(r.resource.generation), RequestedAt: strconv.Itoa(r.resource.request),
	}
}

// rules returns what the state of the release is determined by.
func (r *reconcile) rules() state.Rules {
	return state.Rules{Holder: r.process.name, LockTimeout: 5 * time.Minute, Now: r.policy.Now}
}
