package model

import (
	"slices"
	"strconv"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/capstan-project/capstan/controllers/reconcile/decide"
	"github.com/capstan-project/capstan/controllers/reconcile/report"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// takeOfChange takes a step of the change.
func (r *reconcile) takeOfChange(next decide.Action) []request {
	switch next {
	case decide.Identify:
		r.tried = true
	case decide.CompareRelease, decide.Reassess:
		r.release = decide.Assess(r.wanted(digest(r.content)))
	case decide.MarkRequest:
		return r.change(func(stored *Record) { stored.Request = r.asked() })
	case decide.PlanCRDs:
		r.planCRDs()
	case decide.CheckCRDs:
		r.refuse(Find(r.content.Version).Flaw == Unsafe)
	case decide.DryRun:
		r.refuse(r.wouldRefuse())
	case decide.ApplyCRDs:
		r.checkCRDs()
		return []request{{send: func() bool { r.applyCRD(r.content.Version); return true }}}
	case decide.Apply:
		r.refuse(r.wouldRefuse())

		if !r.result.Ends() {
			return r.act(action{content: r.content, digest: digest(r.content), observed: r.release.State})
		}
	}

	return nil
}

// refuse ends the change if it is refused.
func (r *reconcile) refuse(refused bool) {
	if refused {
		r.result = report.Result{Outcome: report.Stalled, Message: "refused"}
	}
}

// planCRDs compares the CRD with the one of the cluster. It is never downgraded.
func (r *reconcile) planCRDs() {
	seen := r.Snapshot()
	r.refuse(!seen.convertible(r.content.Version))

	r.crdsDiffer = !slices.Contains(r.stored, Find(r.content.Version).Stored[0])
}

// checkCRDs checks that a CRD is applied only if it breaks nothing, and its version would be accepted.
func (r *reconcile) checkCRDs() {
	if Find(r.content.Version).Flaw == Unsafe || r.wouldRefuse() {
		r.report(violates(Untouched, "the CRD of %s is applied", r.content.Version))
	}
}

// wanted returns what the change depends on.
func (r *reconcile) wanted(goal string) decide.Wanted {
	wanted := decide.Wanted{
		History: r.history, Healthy: r.health.Others, Policy: r.policy, Asked: r.asked(), Digest: goal, Basis: r.basis(),
		Rules: r.rules(),
	}

	attempted := decide.AttemptedDigest(r.history)
	edited := r.installed && attempted != goal

	if edited && (r.defect == AppliesEdits || r.defect == HoldsByDigest) {
		wanted.Asked.RequestedAt += " and an edit"
	}

	return wanted
}

// basis returns what a revision would be created from besides the resource.
func (r *reconcile) basis() state.Basis {
	return state.Basis{
		Variables: strconv.Itoa(r.content.Secret), ImageRegistry: strconv.Itoa(r.content.Registry),
	}
}

// finish returns the request that writes the status that the operator reports, if it has changed. It brings the process
// back as the report says.
func (r *reconcile) finish() []request {
	if _, early := r.pass.Early(); early {
		r.again = true
		return nil
	}

	in := r.found()
	summary := r.pass.Summary(in)
	reported := report.Of(in, summary)

	r.again = reported.Retry != ""
	r.process.stalled = summary.Outcome == report.Stalled

	if reported.After > 0 && !r.process.stalled {
		r.wakeAt(r.policy.Now.Add(reported.After))
	}

	handled := r.resource.request
	if handled == r.resource.handled && apiequality.Semantic.DeepEqual(r.resource.status, reported.Status) {
		return nil
	}

	return []request{{send: func() bool {
		r.World.resource.status, r.World.resource.handled = reported.Status, handled
		return true
	}}}
}

// found returns what the reconcile has found out and done.
func (r *reconcile) found() report.Input {
	seen := r.known()
	in := report.Input{
		Provider: report.Provider{
			Label: "infrastructure-model", ReleaseName: "infrastructure-model", Generation: int64(r.resource.generation),
			Status: r.resource.status, Timeout: Timeout,
		},
		Installed: seen.Installed,
		Change:    r.pass.Progress(seen.Change),
		Now:       r.policy.Now,
	}
	in.Change.Goal, in.Change.Failure = r.content.Version, r.failure

	if r.defect == ReportsWantedContract {
		in.Installed.Record.Contract = Find(r.content.Version).Contract
	}

	return in
}

// action is an install, upgrade or rollback.
type action struct {
	content    Content
	digest     string
	rollbackTo int // 0 if it is no rollback
	observed   state.Observed
}

// act returns the requests of an action, in Helm's order. An attempt at the same that failed for a passing
// reason is resumed: the action writes that revision again.
func (r *reconcile) act(a action) []request {
	record, resumes := r.begin(a)

	var plan []request

	if a.observed.State == state.Interrupted {
		plan = append(plan, r.fail(r.newest, state.FailureInterrupted))
	}

	plan = append(plan, request{then: func() { r.applied = true }, send: func() bool {
		if !resumes {
			return r.add(record)
		}

		if r.newestNumber() != record.Number {
			return false
		}

		r.update(record.Number, func(stored *Record) { stored.Status, stored.Failure = record.Status, "" })

		return true
	}})
	plan = append(plan, r.apply(record, record.applied())...)

	return append(plan, r.complete(record, record.Staged)...)
}

// begin returns the revision that an action begins with, and whether it exists.
func (r *reconcile) begin(a action) (record Record, resumes bool) {
	newest, exists := r.history.Newest()
	number := newest.Number + 1

	resumes = exists && newest.Ours() && newest.Status == state.StatusFailed &&
		newest.Failure == state.FailureUnavailable && newest.Digest == a.digest && newest.RollbackTo == a.rollbackTo
	if resumes {
		number = newest.Number
	}

	record = Record{Content: a.content, Revision: state.Revision{
		Number:     number,
		Status:     state.StatusPendingUpgrade,
		Origin:     number,
		Holder:     r.process.name,
		Digest:     a.digest,
		RollbackTo: a.rollbackTo,
		Version:    a.content.Version,
		Paused:     a.content.Paused,
		Staged:     len(Find(a.content.Version).Own) > 0,
	}}

	if a.rollbackTo != 0 {
		record.Status = state.StatusPendingRollback
	} else {
		record.Request = r.asked()
		record.Basis = r.basis()
	}

	return record, resumes
}

// complete returns the requests that end an action, or its first wave if objects wait for the manager.
func (r *reconcile) complete(record Record, staged bool) []request {
	var plan []request

	for _, previous := range r.records {
		if previous.deployed() && previous.Number != record.Number && r.defect != KeepsDeployed {
			plan = append(plan, request{send: func() bool {
				r.update(previous.Number, func(stored *Record) { stored.Status = state.StatusSuperseded })
				return true
			}})
		}
	}

	return append(plan, request{send: func() bool {
		r.update(record.Number, func(stored *Record) {
			stored.Status = state.StatusDeployed
			stored.Staged = staged
		})

		return true
	}})
}

// wouldRefuse reports whether the API server would refuse an object that the resource asks for. It is asked
// once any object exists.
func (r *reconcile) wouldRefuse() bool {
	for name, o := range (Record{Content: r.content}).Objects() {
		if len(r.objects) > 0 && o.isRefused(name) {
			return true
		}
	}

	return false
}

// isRefused reports whether the API server refuses an object with a name.
func (o Object) isRefused(name string) bool {
	return Find(o.Version).Flaw == Refused && name != Manager
}

// apply returns the requests that change the objects to those of a revision. Others are deleted after the last wave.
func (r *reconcile) apply(record Record, wanted map[string]Object) []request {
	var plan []request

	failed := func(refused bool) []request {
		failure := state.FailureUnavailable
		if refused {
			failure = state.FailureRejected
		}

		r.failure = "refused"

		return []request{r.fail(record, failure)}
	}

	for name, o := range byName(wanted) {
		if r.objects[name] == o {
			continue
		}

		plan = append(plan, request{failed: failed, send: func() bool {
			if o.isRefused(name) {
				return false
			}

			r.put(name, o)

			return true
		}})
	}

	if len(wanted) < len(record.Objects()) {
		return plan
	}

	for _, deletion := range r.remove(wanted) {
		deletion.failed = func(bool) []request {
			if r.defect == FailsPruning {
				return []request{r.fail(record, state.FailureRejected)}
			}

			return append(r.complete(record, false), request{send: func() bool {
				r.update(record.Number, func(stored *Record) { stored.Unpruned = true })
				return true
			}})
		}

		plan = append(plan, deletion)
	}

	return plan
}

// remove returns the requests that delete all objects except those that are wanted.
func (r *reconcile) remove(wanted map[string]Object) []request {
	var plan []request

	for _, name := range r.names() {
		if _, keep := wanted[name]; !keep {
			plan = append(plan, request{send: func() bool { delete(r.objects, name); return true }})
		}
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
	kept := map[string]Object{}
	if r.defect == ForgetsObjects {
		kept["a"] = Object{}
	}

	plan := r.remove(kept)

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
