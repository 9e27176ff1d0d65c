package model

import (
	"slices"

	"github.com/capstan-project/capstan/controllers/release/state"
)

// change brings the release to what the resource asks for. The status is written in any case.
func (r *reconcile) change() (plan, last []request) {
	goal := digest(r.content)
	observed := r.determine(goal)
	decision := state.Next(r.history, goal, observed, r.changePolicy())

	if !decision.Until.IsZero() {
		r.wakeAt(decision.Until)
	}

	snapshot := r.Snapshot()
	r.process.stalled = !snapshot.convertible(r.content.Version)

	if decision.Action == state.Apply && !r.process.stalled {
		plan = append(plan, request{send: func() bool { r.applyCRD(r.content.Version); return true }})
		plan = append(plan, r.act(action{content: r.content, digest: goal, observed: observed})...)
	}

	return append(r.markHandled(decision), plan...), r.writeStatus()
}

// markHandled records with the newest revision that the resource asks for nothing else.
func (r *reconcile) markHandled(decision state.Decision) []request {
	newest, exists := r.history.Newest()

	handled := decision.Action == state.None || decision.Action == state.Hold
	if !handled || !exists || newest.Request == r.asked() {
		return nil
	}

	return []request{{send: func() bool {
		r.update(newest.Number, func(stored *Record) { stored.Request = r.asked() })
		return true
	}}}
}

// writeStatus writes the status, if it has changed.
func (r *reconcile) writeStatus() []request {
	status := r.resource
	status.observed, status.handled = status.generation, status.request
	status.existed = len(r.history.Revisions) > 0

	if newest, exists := r.newestRecord(); exists {
		status.contract = Find(newest.Content.Version).Contract
	}

	if status == r.resource {
		return nil
	}

	return []request{{send: func() bool {
		current := &r.World.resource
		current.observed, current.handled = status.observed, status.handled
		current.existed, current.contract = status.existed, status.contract

		return true
	}}}
}

// action is an install, upgrade or rollback.
type action struct {
	content    Content
	digest     string
	rollbackTo int // 0 if it is no rollback
	observed   state.Observed
}

// act returns the requests of an action, in Helm's order.
func (r *reconcile) act(a action) []request {
	number := r.newest() + 1
	record := Record{Content: a.content, Revision: state.Revision{
		Number:     number,
		Status:     state.StatusPendingUpgrade,
		Origin:     number,
		Holder:     r.process.name,
		Digest:     a.digest,
		RollbackTo: a.rollbackTo,
		Version:    a.content.Version,
		Paused:     a.content.Paused,
	}}

	if a.rollbackTo != 0 {
		record.Status = state.StatusPendingRollback
	} else {
		record.Request = r.asked()
	}

	var plan []request

	if a.observed.State == state.Interrupted {
		plan = append(plan, r.fail(r.records[0], state.FailureInterrupted))
	}

	plan = append(plan, request{send: func() bool { return r.add(record) }})
	plan = append(plan, r.apply(record)...)

	for _, previous := range r.records {
		if previous.deployed() {
			plan = append(plan, request{send: func() bool {
				r.update(previous.Number, func(stored *Record) { stored.Status = state.StatusSuperseded })
				return true
			}})
		}
	}

	return append(plan, request{send: func() bool {
		r.update(record.Number, func(stored *Record) { stored.Status = state.StatusDeployed })
		return true
	}})
}

// apply returns the requests that change the objects to those of a revision.
func (r *reconcile) apply(record Record) []request {
	var plan []request

	failed := func(refused bool) []request {
		failure := state.FailureUnavailable
		if refused {
			failure = state.FailureRejected
		}

		return []request{r.fail(record, failure)}
	}
	wanted := record.Objects()

	for name, o := range byName(wanted) {
		if r.objects[name] == o {
			continue
		}

		plan = append(plan, request{failed: failed, send: func() bool {
			if Find(o.Version).Flaw == Refused && name != Manager {
				return false
			}

			r.put(name, o)

			return true
		}})
	}

	for _, name := range r.names() {
		if _, keep := wanted[name]; keep {
			continue
		}

		plan = append(plan, request{
			send:   func() bool { delete(r.objects, name); return true },
			failed: func(bool) []request { return []request{r.fail(record, state.FailureRejected)} },
		})
	}

	return plan
}

// fail returns the request that marks a revision failed.
func (r *reconcile) fail(record Record, failure state.Failure) request {
	return request{send: func() bool {
		r.update(record.Number, func(stored *Record) {
			stored.Status = state.StatusFailed
			if stored.Ours() {
				stored.Failure = failure
			}
		})

		return true
	}}
}

// uninstall removes the provider of a resource that is being deleted, and then the resource.
func (r *reconcile) uninstall() []request {
	var plan []request

	for _, name := range r.names() {
		plan = append(plan, request{send: func() bool { delete(r.objects, name); return true }})
	}

	for _, record := range slices.Backward(r.records) {
		plan = append(plan, request{send: func() bool {
			r.records = slices.DeleteFunc(slices.Clone(r.records), func(other Record) bool {
				return other.Number == record.Number
			})

			return true
		}})
	}

	if len(plan) > 0 {
		return plan
	}

	return []request{{send: func() bool {
		r.report(r.oracle.CheckGone(r.Snapshot()))
		r.create()

		return true
	}}}
}
