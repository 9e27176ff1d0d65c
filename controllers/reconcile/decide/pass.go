package decide

import (
	"maps"
	"slices"

	"github.com/capstan-project/capstan/controllers/reconcile/report"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// The actions between the parts of a pass.
const (
	// CareAgain reads the release after the change, so that care begins again.
	CareAgain Action = "CareAgain"
	// Reassess compares the release with the plan after that.
	Reassess Action = "Reassess"
	// CareForCRDs restores the CRDs of the installed chart.
	CareForCRDs Action = "CareForCRDs"
	// Finish ends the pass.
	Finish Action = "Finish"
)

// Seen is what a pass has read and found out so far.
type Seen struct {
	// Installed is what was read of the release. Stale is set if the release was changed since.
	Installed report.Installed
	Stale     bool
	Policy    state.Policy
	// Rules for the state of the release.
	Rules state.Rules
	// Waiting, Lost and Compares are what care also depends on. Compares is set if drift matters.
	Waiting        Waiting
	Lost, Compares bool
	// Change is what a change also depends on.
	Change Changing
}

// part is a part of a pass.
type part int

const (
	caring part = iota
	changing
	beforeCaringAgain
	caringAgain
	reassessing
	caringForCRDs
	finished
)

// Pass is how far a reconcile got with a resource that is neither suspended nor deleted: care for what is installed,
// the change to what is asked for, and care again if that has left another newest revision.
type Pass struct {
	part part

	// done are the actions that care has taken with the newest revision, whose number is revision, and allowed is the
	// number of one that the provider may return to. deferred is set if care left the revision to the change.
	done              []Action
	revision, allowed int
	deferred          bool

	// Problems with drift and with what could not be deleted do not keep care from its other steps. stopped is how
	// another step has ended it.
	drift, left, stopped report.Result

	// answers are the results of the actions of the change, and passed is set once all its checks were.
	answers Answers
	passed  bool

	// care and change are how the parts have ended, and early is how the pass has, if it ended before them.
	care, change, early report.Result
}

// Next returns the next step, and the pass that it belongs to.
func (p Pass) Next(seen Seen) (Pass, Step) {
	switch p.part {
	case caring, caringAgain:
		return p.nextOfCare(seen)
	case changing:
		return p, Change(p.Changing(seen))
	case beforeCaringAgain:
		if p.deferred || seen.Change.Applied {
			return p, Step{Action: CareAgain}
		}

		p.part = caringForCRDs

		return p.Next(seen)
	case reassessing:
		if seen.Change.Release.Decision.Action != "" {
			return p, Step{Action: Reassess}
		}

		p.part = caringForCRDs

		return p.Next(seen)
	case caringForCRDs:
		if !p.Changing(seen).AppliedCRDs() {
			return p, Step{Action: CareForCRDs}
		}
	}

	return p, Step{Action: Finish}
}

func (p Pass) nextOfCare(seen Seen) (Pass, Step) {
	switch {
	case p.stopped.Ends() || !seen.Installed.Record.Readable:
		return p.leaveCare().Next(seen)
	case seen.Stale:
		return p, Step{Action: Observe}
	}

	p.revision = seen.Installed.Revision.Number

	return p, Care(p.caring(seen))
}

// leaveCare ends care.
func (p Pass) leaveCare() Pass {
	p.care = report.First(p.drift, p.stopped, p.left)
	p.drift, p.left, p.stopped = report.Result{}, report.Result{}, report.Result{}
	p.done, p.allowed = nil, 0
	p.part++

	return p
}

// After returns the pass after a step with its result, where seen is what is known then.
func (p Pass) After(step Step, result report.Result, seen Seen) Pass {
	switch p.part {
	case caring, caringAgain:
		return p.afterCare(step, result, seen)
	case changing:
		return p.afterChange(step, result, seen)
	case caringForCRDs:
		p.care = report.First(p.care, result)
	default:
		p.early = result
	}

	p.part++
	if p.early.Ends() {
		p.part = finished
	}

	return p
}

func (p Pass) afterCare(step Step, result report.Result, seen Seen) Pass {
	if step.Action != Observe {
		p.done = append(slices.Clone(p.done), step.Action)
	}

	switch step.Action {
	case Nothing:
		return p.leaveCare()
	case Observe:
		p.stopped = result
		p = p.afterObserving(seen)
	case Prune:
		p.left = result
	case Compare:
		p.drift = result
	case CompareLost:
		p.drift = result
		p = p.repeat(CheckHealth)
	case Leave:
		p.deferred = true
	default:
		p.stopped = result
	}

	// What was refused is no target any more.
	if step.Action == CheckTarget {
		p.allowed = step.Target.Number
	}

	if step.Action == Rollback && seen.Policy.Refused[step.Target.Number] {
		p = p.repeat(Rollback)
	}

	return p
}

// afterObserving: what was done with a revision is done again with another one, but there is one rollback in a pass.
func (p Pass) afterObserving(seen Seen) Pass {
	if seen.Installed.Revision.Number != p.revision {
		p.done = slices.DeleteFunc(slices.Clone(p.done), func(action Action) bool { return action != Rollback })
	}

	return p.repeat(Compare, CheckHealth)
}

// repeat lets care take actions again.
func (p Pass) repeat(actions ...Action) Pass {
	p.done = slices.DeleteFunc(slices.Clone(p.done), func(action Action) bool { return slices.Contains(actions, action) })
	return p
}

func (p Pass) afterChange(step Step, result report.Result, seen Seen) Pass {
	switch step.Action {
	case Block:
		p.answers = p.answers.Replan()
	case End:
		p.passed = p.Changing(seen).Passed()
		p.change = step.Result
		p.part++

		if p.change.Outcome == report.Repeated {
			p.early, p.part = p.change, finished
		}
	default:
		p.answers = maps.Clone(p.answers)
		if p.answers == nil {
			p.answers = Answers{}
		}

		p.answers[step.Action] = result
	}

	return p
}

// caring returns what care depends on.
func (p Pass) caring(seen Seen) Installed {
	installed := seen.Installed

	return Installed{
		History:  installed.History,
		Observed: state.Determine(installed.History, AttemptedDigest(installed.History), seen.Rules),
		Policy:   seen.Policy,
		Health:   installed.Health,
		Waiting:  seen.Waiting,
		// Before a revision is deployed it is not settled what its objects should be.
		Drift:   seen.Compares && installed.Revision.Status == state.StatusDeployed,
		Lost:    seen.Lost,
		Done:    p.done,
		Allowed: p.allowed,
	}
}

// Changing returns what the change depends on.
func (p Pass) Changing(seen Seen) Changing {
	record := seen.Installed.Record

	known := seen.Change
	known.Answers = p.answers
	known.SpecChanged = seen.Policy.SpecChanged
	known.First = !seen.Policy.Existed
	known.Observed = seen.Installed.Observed
	known.History = seen.Installed.History
	known.Installed = Content{Known: record.Readable, Version: record.AppVersion, Contract: record.Contract}

	return known
}

// Progress returns how far the change got.
func (p Pass) Progress(change Changing) report.Progress {
	_, planned := p.answers[Plan]

	return report.Progress{
		Planned:       planned,
		InputsProblem: change.Problem,
		Digest:        change.Release.Digest,
		State:         change.Release.State,
		Decision:      change.Release.Decision,
		Pinned:        change.Release.Pinned,
		Passed:        p.passed,
	}
}

// Early returns how the pass ended, if it ended before there was anything to report.
func (p Pass) Early() (report.Summary, bool) {
	return report.Summary{Result: p.early}, p.early.Ends()
}

// Summary returns how the pass ended.
func (p Pass) Summary(in report.Input) report.Summary { return report.Summarize(in, p.care, p.change) }

// Again returns the policy of care that begins again: what the resource asks for was tried.
func Again(policy state.Policy) state.Policy {
	policy.SpecChanged, policy.Requested, policy.Refused = false, false, nil
	return policy
}
