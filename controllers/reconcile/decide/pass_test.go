package decide

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/controllers/reconcile/report"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// take takes the steps of a pass, and returns their actions. What a step does to the world is in effects.
func take(seen Seen, effects map[Action]func(*Seen) report.Result) (Pass, []Action) {
	var (
		pass    Pass
		actions []Action
	)

	for {
		next, step := pass.Next(seen)
		actions = append(actions, step.Action)

		if step.Action == Finish || len(actions) > 100 {
			return next, actions
		}

		result := report.Result{}
		if effect, has := effects[step.Action]; has {
			result = effect(&seen)
		}

		pass = next.After(step, result, seen)
	}
}

// TestPass checks in which order care and change take their steps.
func TestPass(t *testing.T) {
	healthy := state.Revision{
		Number: 1, Origin: 1, Status: state.StatusSuperseded, Digest: "old", Healthy: true, Known: state.AnyRecord(),
	}
	late := state.Revision{
		Number: 2, Origin: 2, Status: state.StatusDeployed, Digest: "new", Known: state.AnyRecord(), Changed: now,
	}
	stalled := report.Result{Outcome: report.Stalled, Message: "refused"}
	retrying := report.Result{Outcome: report.Retrying, Message: "a timeout"}
	ends := func(result report.Result) func(*Seen) report.Result {
		return func(*Seen) report.Result { return result }
	}

	show := func(seen *Seen, revisions ...state.Revision) {
		seen.Installed.History.Revisions = revisions
		seen.Installed.Revision = revisions[0]
		seen.Installed.Record.Readable = true
	}
	with := func(change func(*Seen)) Seen {
		seen := Seen{
			Policy:   state.Policy{Rollback: true, Timeout: time.Minute, Now: now.Add(time.Hour), Refused: map[int]bool{}},
			Compares: true, Installed: report.Installed{Observed: true},
		}
		show(&seen, late, healthy)
		change(&seen)

		return seen
	}
	failed := func(seen *Seen) report.Result {
		seen.Stale = true
		return report.Result{}
	}
	observed := func(revisions ...state.Revision) func(*Seen) report.Result {
		return func(seen *Seen) report.Result {
			seen.Stale = false
			show(seen, revisions...)

			return report.Result{}
		}
	}
	isFailed := late
	isFailed.Status, isFailed.Failure = state.StatusFailed, state.FailureUnhealthy

	unpruned := healthy
	unpruned.Status, unpruned.Unpruned = state.StatusDeployed, true

	changeStops := ends(stalled)

	for name, c := range map[string]struct {
		seen    Seen
		effects map[Action]func(*Seen) report.Result
		want    []Action
		ended   report.Result // how the pass has ended early, or its care
	}{
		"a failed revision is observed, and returns to where it may": {
			with(func(*Seen) {}),
			map[Action]func(*Seen) report.Result{
				MarkFailed: failed, Observe: observed(isFailed, healthy), Identify: changeStops,
				CheckTarget: func(seen *Seen) report.Result {
					seen.Policy.Refused[1] = true
					return report.Result{}
				},
			},
			[]Action{
				Compare, CheckHealth, MarkFailed, Observe, CheckHealth, CheckTarget, Nothing, Identify, End, CareForCRDs, Finish,
			},
			report.Result{},
		},
		"a refused rollback is no rollback": {
			with(func(seen *Seen) { show(seen, isFailed, healthy) }),
			map[Action]func(*Seen) report.Result{
				Identify: changeStops,
				Rollback: func(seen *Seen) report.Result {
					seen.Policy.Refused[1] = true
					return report.Result{}
				},
			},
			[]Action{CheckHealth, CheckTarget, Rollback, Nothing, Identify, End, CareForCRDs, Finish},
			report.Result{},
		},
		"there is one rollback in a pass": {
			with(func(seen *Seen) { show(seen, isFailed, healthy) }),
			map[Action]func(*Seen) report.Result{Identify: changeStops, Rollback: failed, Observe: observed(isFailed, healthy)},
			[]Action{CheckHealth, CheckTarget, Rollback, Observe, CheckHealth, Nothing, Identify, End, CareForCRDs, Finish},
			report.Result{},
		},
		"what was done with a revision is done again with another one only": {
			with(func(seen *Seen) { show(seen, unpruned) }),
			map[Action]func(*Seen) report.Result{Identify: changeStops, Prune: failed, Observe: observed(unpruned)},
			[]Action{Prune, Observe, Compare, CheckHealth, Nothing, Identify, End, CareForCRDs, Finish},
			report.Result{},
		},
		"care begins again after a spec that did not come to replace a failed revision": {
			with(func(seen *Seen) { show(seen, isFailed, healthy); seen.Policy.SpecChanged = true }),
			map[Action]func(*Seen) report.Result{
				Identify: changeStops, Rollback: ends(retrying),
				CareAgain: func(seen *Seen) report.Result {
					seen.Policy = Again(seen.Policy)
					return report.Result{}
				},
			},
			[]Action{
				CheckHealth, Leave, Nothing, Identify, End, CareAgain, CheckHealth, CheckTarget, Rollback, CareForCRDs, Finish,
			},
			retrying,
		},
		"a problem with drift stops neither health nor change": {
			with(func(seen *Seen) { seen.Policy.Now = now }),
			map[Action]func(*Seen) report.Result{Compare: ends(retrying), Identify: changeStops},
			[]Action{Compare, CheckHealth, Nothing, Identify, End, CareForCRDs, Finish},
			retrying,
		},
		"another problem stops care, and not the change": {
			with(func(seen *Seen) { seen.Policy.Now = now }),
			map[Action]func(*Seen) report.Result{CheckHealth: ends(retrying), Identify: changeStops},
			[]Action{Compare, CheckHealth, Identify, End, CareForCRDs, Finish},
			retrying,
		},
		"a release that cannot be read again is reported": {
			with(func(seen *Seen) { show(seen, isFailed, healthy); seen.Policy.SpecChanged = true }),
			map[Action]func(*Seen) report.Result{Identify: changeStops, CareAgain: ends(retrying)},
			[]Action{CheckHealth, Leave, Nothing, Identify, End, CareAgain, Finish},
			retrying,
		},
		"nothing is installed": {
			with(func(seen *Seen) { seen.Installed.Record.Readable = false }),
			map[Action]func(*Seen) report.Result{Identify: changeStops},
			[]Action{Identify, End, CareForCRDs, Finish},
			report.Result{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pass, actions := take(c.seen, c.effects)
			g.Expect(actions).To(Equal(c.want))
			g.Expect(report.First(pass.early, pass.care)).To(Equal(c.ended))
		})
	}
}

// TestPassObservesWhatItHasApplied checks the steps after a revision was created.
func TestPassObservesWhatItHasApplied(t *testing.T) {
	g := NewWithT(t)
	seen := Seen{Installed: report.Installed{Observed: true}}
	seen.Change.Planned = Content{Known: true, Contract: "v1beta1"}

	_, actions := take(seen, map[Action]func(*Seen) report.Result{
		CompareRelease: func(seen *Seen) report.Result {
			seen.Change.Release.Decision.Action = state.Apply
			return report.Result{}
		},
		Apply: func(seen *Seen) report.Result {
			seen.Change.Applied = true
			return report.Result{}
		},
	})

	g.Expect(actions).To(Equal([]Action{
		Identify, Select, Plan, CompareRelease, CheckRequirements, CheckCore, CheckTurn, CheckInstalled, PlanCRDs, Announce,
		CorrectCRDs, Apply, AwaitCRDs, End, CareAgain, Reassess, Finish,
	}))
}

// TestPassTellsChangeWhatIsInstalled: without a confirmed revision, core would have to be ready.
func TestPassTellsChangeWhatIsInstalled(t *testing.T) {
	history := state.History{Revisions: []state.Revision{{Number: 1, Known: state.AnyRecord()}}}
	seen := Seen{Installed: report.Installed{Observed: true, History: history}, Policy: state.Policy{SpecChanged: true}}
	seen.Installed.Record = report.Record{Readable: true, AppVersion: "v1.0.0", Contract: "v1beta1"}

	NewWithT(t).Expect(Pass{}.Changing(seen)).To(Equal(Changing{
		SpecChanged: true, First: true, Observed: true, History: history,
		Installed: Content{Known: true, Version: "v1.0.0", Contract: "v1beta1"},
	}))
}
