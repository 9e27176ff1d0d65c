package model

import (
	"slices"
	"strconv"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/capstan-project/capstan/controllers/reconcile/decide"
	"github.com/capstan-project/capstan/controllers/reconcile/report"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// change does what the operator decides about what the resource asks for. The status is written in any case.
func (r *reconcile) change() (plan, last []request) {
	known := r.changing()

	for {
		step := decide.Change(known)

		switch step.Action {
		case decide.End:
			return plan, r.writeStatus(known, step.Result)
		case decide.CompareRelease:
			known.Release = decide.Assess(r.wanted(digest(r.content)))
		case decide.MarkRequest:
			plan = append(plan, r.markHandled())
		case decide.ApplyCRDs:
			plan = append(plan, request{send: func() bool { r.applyCRD(r.content.Version); return true }})
		case decide.Apply:
			if !r.wouldRefuse() {
				wanted := action{content: r.content, digest: digest(r.content), observed: known.Release.State}
				plan = append(plan, r.act(wanted)...)
			}
		}

		known.Answers[step.Action] = r.answer(step.Action)
	}
}

// changing returns what the change goes by.
func (r *reconcile) changing() decide.Changing {
	known := decide.Changing{
		Answers:  decide.Answers{},
		Observed: true,
		History:  r.history,
		Planned:  content(r.content.Version),
		CRDs:     decide.CRDs{Change: !slices.Contains(r.stored, Find(r.content.Version).Stored[0])},
		Now:      r.policy.Now,
	}

	if newest, exists := r.newestRecord(); exists {
		known.Installed = content(newest.Content.Version)
	}

	return known
}

func content(version string) decide.Content {
	return decide.Content{Known: true, Version: version, Contract: Find(version).Contract}
}

// answer returns how an action ends.
func (r *reconcile) answer(action decide.Action) report.Result {
	refuses := false

	switch action {
	case decide.PlanCRDs:
		seen := r.Snapshot()
		refuses = !seen.convertible(r.content.Version)
	case decide.DryRun, decide.Apply:
		refuses = r.wouldRefuse()
	}

	if refuses {
		return report.Result{Outcome: report.Stalled}
	}

	return report.Result{}
}

// wanted returns what the change goes by.
func (r *reconcile) wanted(goal string) decide.Wanted {
	wanted := decide.Wanted{
		History: r.history, Healthy: r.healthy, Policy: r.policy, Asked: r.asked(), Digest: goal, Basis: r.basis(),
		Rules: r.rules(),
	}

	attempted := decide.AttemptedDigest(r.history)
	edited := len(r.records) > 0 && attempted != goal

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

// markHandled records with the newest revision that the resource asks for nothing else.
func (r *reconcile) markHandled() request {
	newest, _ := r.history.Newest()

	return request{send: func() bool {
		r.update(newest.Number, func(stored *Record) { stored.Request = r.asked() })
		return true
	}}
}

// writeStatus writes the status that the operator reports, if it has changed. It brings the process back as the
// report says.
func (r *reconcile) writeStatus(known decide.Changing, ended report.Result) []request {
	in := r.found(known)
	summary := report.Summarize(in, report.Result{}, ended)
	reported := report.Of(in, summary)

	r.process.stalled = summary.Outcome == report.Stalled
	if reported.After > 0 && !r.process.stalled {
		r.wakeAt(r.policy.Now.Add(reported.After))
	}

	status := r.resource
	status.handled = status.request

	if status.handled == r.resource.handled && apiequality.Semantic.DeepEqual(status.status, reported.Status) {
		return nil
	}

	return []request{{send: func() bool {
		r.World.resource.status, r.World.resource.handled = reported.Status, status.handled
		return true
	}}}
}

// found returns what the reconcile has found out and done.
func (r *reconcile) found(known decide.Changing) report.Input {
	in := report.Input{
		Provider: report.Provider{
			Label: "infrastructure-model", ReleaseName: "infrastructure-model", Generation: int64(r.resource.generation),
			Status: r.resource.status, Timeout: Timeout,
		},
		Installed: report.Installed{Observed: true, History: r.history, Identified: true},
		Change: report.Progress{
			Planned: true, Goal: r.content.Version, Digest: known.Release.Digest, State: known.Release.State,
			Decision: known.Release.Decision, Pinned: known.Release.Pinned, Passed: known.Passed(),
		},
		Now: r.policy.Now,
	}

	newest, exists := r.newestRecord()
	if !exists {
		return in
	}

	in.Installed.Revision = r.history.Revisions[0]
	in.Installed.Record = report.Record{
		Readable: true, AppVersion: newest.Content.Version, Contract: Find(newest.Content.Version).Contract,
		Paused: newest.Content.Paused,
	}
	in.Installed.Health = report.Health{Checked: true, Healthy: r.healthy, Others: r.healthy, Message: "manager"}
	in.Installed.Drift = report.Drift{Compared: true}

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
		plan = append(plan, r.fail(r.records[0], state.FailureInterrupted))
	}

	plan = append(plan, request{send: func() bool {
		if !resumes {
			return r.add(record)
		}

		if r.newest() != record.Number {
			return false
		}

		r.update(record.Number, func(stored *Record) { stored.Status, stored.Failure = record.Status, "" })

		return true
	}})
	plan = append(plan, r.apply(record)...)

	return append(plan, r.complete(record, false)...)
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
	}}

	if a.rollbackTo != 0 {
		record.Status = state.StatusPendingRollback
	} else {
		record.Request = r.asked()
		record.Basis = r.basis()
	}

	return record, resumes
}

// complete returns the requests that end an action. Unpruned is true if objects are left to be deleted.
func (r *reconcile) complete(record Record, unpruned bool) []request {
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
			stored.Unpruned = unpruned
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
			if o.isRefused(name) {
				return false
			}

			r.put(name, o)

			return true
		}})
	}

	for _, deletion := range r.remove(wanted) {
		deletion.failed = func(bool) []request {
			if r.defect == FailsPruning {
				return []request{r.fail(record, state.FailureRejected)}
			}

			return r.complete(record, true)
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
