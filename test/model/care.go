package model

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/capstan-project/capstan/controllers/reconcile/decide"
	"github.com/capstan-project/capstan/controllers/reconcile/report"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// take takes a step of a pass: it reads at once, and returns the requests that change something.
func (r *reconcile) take(step decide.Step) []request {
	switch step.Action {
	case decide.Nothing:
		r.requeue(step.Until)
	case decide.Observe:
		r.observe()
	case decide.CareAgain:
		r.observe()
		r.policy = decide.Again(r.policy)
	case decide.CheckHealth:
		r.checkHealth()
	case decide.Compare, decide.CompareLost:
		r.compared = true
		return r.correct()
	case decide.CheckTarget:
		r.checkTarget(step.Target)
	case decide.MarkHealthy:
		return r.change(func(stored *Record) { stored.Healthy = true })
	case decide.Prune, decide.Advance, decide.MarkFailed, decide.Rollback:
		r.stale = true
		return r.changeRelease(step)
	default:
		return r.takeOfChange(step.Action)
	}

	return nil
}

// changeRelease returns the requests of a step of care after which the release is read again.
func (r *reconcile) changeRelease(step decide.Step) []request {
	newest := r.newest

	switch step.Action {
	case decide.Prune:
		return append(r.remove(newest.Objects()), r.change(func(stored *Record) { stored.Unpruned = false })...)
	case decide.Advance:
		return r.advance()
	case decide.MarkFailed:
		return []request{r.fail(newest, step.Failure)}
	}

	r.checkRollback()

	target, _ := r.find(step.Target.Number)
	digest := decide.AttemptedDigest(r.history)

	return r.act(action{
		content: target.Content, digest: target.Digest, rollbackTo: target.Number,
		observed: state.Determine(r.history, digest, r.rules()),
	})
}

// advance returns the requests that apply what waited for the manager, and delete what is left. The operator makes them
// right after it has checked that no other program has made a revision.
func (r *reconcile) advance() []request {
	number := r.newest.Number
	plan := append(r.apply(r.newest, r.newest.Objects()), r.change(func(stored *Record) { stored.Staged = false })...)

	for i := range plan {
		send := plan[i].send
		plan[i].send = func() bool { return r.newestNumber() == number && send() }
		plan[i].failed = nil // it is tried again
	}

	return plan
}

// observe reads the release.
func (r *reconcile) observe() {
	r.policy.Now = r.now
	r.history, r.stale = r.World.history(), false
	r.health, r.compared, r.lost = report.Health{}, false, false
	r.newest, r.installed = r.newestRecord()
}

// checkHealth reads the health of the newest revision. Objects that wait for the manager are not healthy.
func (r *reconcile) checkHealth() {
	others := r.healthy(r.newest.applied())
	r.health = report.Health{
		Checked: true, Healthy: others && !r.newest.Staged, Others: others, Message: "the manager is not available",
	}

	for name := range r.newest.applied() {
		if _, exists := r.objects[name]; !exists {
			r.lost = r.compared
		}
	}
}

// requeue makes the process look again at a time, or when events would tell that the next step can be taken.
func (r *reconcile) requeue(until time.Time) {
	r.wakeAt(until)

	if !r.health.Others {
		r.wakeAt(r.changed.Add(startup))
	}
}

// checkTarget finds out whether the provider may return to a revision: not if its managers cannot convert what is
// stored.
func (r *reconcile) checkTarget(target state.Revision) {
	record, _ := r.find(target.Number)
	seen := r.Snapshot()

	if !seen.convertible(record.Content.Version) && r.defect != ReturnsUnchecked {
		if r.policy.Refused == nil {
			r.policy.Refused = map[int]bool{}
		}

		r.policy.Refused[target.Number] = true
	}
}

// checkRollback checks that a spec that was changed meanwhile, and may be the fix, is tried before a rollback.
func (r *reconcile) checkRollback() {
	untried := int64(r.resource.generation) != r.resource.status.ObservedGeneration && !r.tried
	seen := r.Snapshot()
	fix := Find(r.content.Version)

	if untried && r.newest.Wanted != r.content.Wanted && fix.Flaw == None && seen.convertible(fix.Name) {
		r.report(violates(Asked, "what failed is rolled back, and %+v is asked for", r.content.Wanted))
	}
}

// correct returns the requests that correct drift. The operator makes them right after it has checked that
// no other program has made a revision.
func (r *reconcile) correct() []request {
	var plan []request

	number := r.newest.Number
	r.lost = false

	for name, o := range byName(r.newest.applied()) {
		if r.objects[name] != o {
			plan = append(plan, request{send: func() bool {
				if r.newestNumber() == number {
					r.put(name, o)
				}

				return true
			}})
		}
	}

	return plan
}

// change returns the request that changes the record of the newest revision.
func (r *reconcile) change(change func(*Record)) []request {
	number := r.newest.Number

	return []request{{
		send: func() bool { r.update(number, change); return true },
		then: func() {
			r.history.Revisions = slices.Clone(r.history.Revisions)
			record := Record{Revision: r.history.Revisions[0]}
			change(&record)
			r.history.Revisions[0] = record.Revision
		},
	}}
}

// applied returns the objects that are not waiting for the manager.
func (r Record) applied() map[string]Object {
	objects := r.Objects()
	if r.Staged {
		maps.DeleteFunc(objects, func(name string, _ Object) bool { return r.isOwn(name) })
	}

	return objects
}

// isOwn reports whether an object waits until the provider's manager is healthy.
func (r Record) isOwn(name string) bool { return slices.Contains(Find(r.Content.Version).Own, name) }

// known returns what the operator knows.
func (r *reconcile) known() decide.Seen {
	seen := decide.Seen{
		Stale:    r.stale,
		Policy:   r.policy,
		Rules:    r.rules(),
		Lost:     r.lost,
		Compares: r.defect != IgnoresDrift,
		Change: decide.Changing{
			Planned: decide.Content{
				Known: true, Version: r.content.Version, Contract: Find(r.content.Version).Contract,
			},
			Release:    r.release,
			CRDsDiffer: r.crdsDiffer,
			Applied:    r.applied,
			Now:        r.policy.Now,
		},
	}
	seen.Installed = report.Installed{Observed: true, History: r.history, Identified: true}

	if !r.installed {
		return seen
	}

	version := r.newest.Content.Version
	seen.Installed.Revision = r.history.Revisions[0]
	seen.Installed.Record = report.Record{
		Readable: true, AppVersion: version, Contract: Find(version).Contract, Paused: r.newest.Content.Paused,
	}
	seen.Installed.Health = r.health
	seen.Installed.Drift = report.Drift{Compared: r.compared}
	seen.Waiting = decide.Waiting{
		Staged: r.newest.Staged && r.newest.deployed(), ForManager: r.newest.Content.Paused,
	}

	return seen
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
