package reconcile

import (
	"context"
	"errors"
	"fmt"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/preflight"
	"github.com/capstan-project/capstan/controllers/reconcile/decide"
	"github.com/capstan-project/capstan/controllers/reconcile/report"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/cluster"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// checkRequirements makes sure that the contract of the plan fits the other providers', that its variables have
// values, and that the APIs that it needs are served.
func (r *run) checkRequirements(ctx context.Context) report.Result {
	err := r.Preflight.Installation(ctx, preflight.Input{
		Provider:         r.provider,
		Mapper:           r.target.Client.RESTMapper(),
		Contract:         r.change.plan.Chart.Contract(),
		RequiredKinds:    r.change.plan.Chart.RequiredKinds(),
		MissingVariables: r.change.plan.MissingVariables,
	})

	// Until they are served, changes of their CRDs bring the resource back.
	r.target.CRDs.Await(v1alpha2.Label(r.provider), preflight.MissingKinds(err)...)

	return failed(err, applying)
}

// checkCore makes sure that core is ready. That it is not is reported after the CRDs if these may be applied
// nevertheless, because they take a while to be served.
func (r *run) checkCore(ctx context.Context) report.Result {
	err := r.Preflight.CoreReady(ctx, r.provider)
	if core := new(preflight.Error); errors.As(err, &core) {
		r.change.coreLater = core.AllowCRDs
	}

	return failed(err, applying)
}

// selectVersion selects the version that the range of the resource resolves to, if the operator may do so.
func (r *run) selectVersion(ctx context.Context) report.Result {
	return r.upgrade(ctx, decide.Prevented{})
}

// upgrade selects a version, and wakes the resource when that may have changed.
func (r *run) upgrade(ctx context.Context, prevented decide.Prevented) report.Result {
	seen := r.upgrading(prevented)

	for {
		step := r.decided(seen, decide.Upgrade(seen))
		if step.Action == decide.ReadOthers {
			seen.Answers[step.Action] = failed(r.Automatic.ReadOthers(ctx, r.provider, &seen), fetching)
			continue
		}

		if step.Result.Ends() {
			return step.Result
		}

		r.selection, r.memory.waits = step.Selection, step.Selection.Waits
		r.note(report.WillUpgrade(r.selection.Pending))

		if !step.Until.IsZero() {
			r.Wake(v1alpha2.Label(r.provider), r.provider.GetNamespace(), step.Until.Sub(seen.Now))
		}

		return report.Result{}
	}
}

// upgrading returns what an automatic upgrade goes by.
func (r *run) upgrading(prevented decide.Prevented) decide.Upgrading {
	seen, err := r.Automatic.Read(r.provider)
	if err != nil {
		refused := &preflight.Error{Reason: v1alpha2.InvalidUpgradePolicyReason, Message: err.Error()}
		seen.Invalid = failed(refused, fetching)
	}

	seen.History, seen.Prevented = r.installed.history, prevented
	seen.Waits = r.memory.waits

	if record := r.installed.record; record != nil {
		seen.Contract = record.Contract
	}

	switch {
	case r.provider.GetSpec().Paused:
		seen.Obstacle = "spec.paused is true"
	case !r.installed.healthy():
		seen.Obstacle = "the provider is not healthy"
	case r.installed.deviations != nil && len(leftDeviations(*r.installed.deviations)) > 0:
		seen.Obstacle = "objects have drifted"
	}

	return seen
}

// block gives up an automatic upgrade that was about to start, and returns to the version that is installed. If that of
// another provider came first, that is selected already.
func (r *run) block(ctx context.Context, reason string) {
	if r.selection.Starts() {
		r.upgrade(ctx, decide.Prevented{Version: r.selection.Version, Message: reason})
	}

	r.note(report.Resolved(r.selection.Version))
	r.change = change{}
}

// dryRun prepares the installation or upgrade before its CRDs are applied, so that nothing is touched if a patch
// matches nothing, an object belongs to another release, or the API server would refuse one.
func (r *run) dryRun(ctx context.Context) report.Result {
	var err error

	r.change.prepared, err = r.preparePlan(ctx, r.change.release.State, release.PrepareOptions{CRDsFollow: true})

	return failed(err, applying)
}

func (r *run) preparePlan(
	ctx context.Context, observed state.Observed, options release.PrepareOptions,
) (_ *release.Prepared, err error) {
	r.change.plan.Release.Request, options.Since = r.asked(), r.existed()

	if r.change.plan.Release.Own, err = r.ownKinds(ctx); err != nil {
		return nil, err
	}

	options.Known = r.installed.history.Revisions

	return r.target.Releases.Prepare(ctx, r.change.plan.Release, observed, options)
}

// checkTurn makes sure that no other provider has to change its version first.
func (r *run) checkTurn(ctx context.Context) report.Result {
	return failed(r.Preflight.Turn(ctx, r.provider, r.change.plan.Chart.Contract()), applying)
}

// checkRevision makes sure that the provider may return to the revision that spec.release.rollbackTo
// names. Whether it exists, and can be read, is Helm's to say.
func (r *run) checkRevision(ctx context.Context) report.Result {
	to, exists := r.installed.history.Find(int(*plan.ReleaseSpec(r.provider.GetSpec()).RollbackTo))
	if !exists {
		return report.Result{}
	}

	err := r.checkTarget(ctx, to)
	if errors.As(err, new(*storage.CorruptError)) {
		return report.Result{}
	}

	return failed(err, applying)
}

// checkTarget checks whether the provider may return to a revision. If it must not, refusesRollback
// the error.
func (r *run) checkTarget(ctx context.Context, revision state.Revision) error {
	checker := rollbackChecker{planner: r.Planner, preflight: r.Preflight}
	return checker.check(ctx, r.provider, r.target, revision)
}

// refuse rules out a target of a rollback.
func (r *run) refuse(target state.Revision, reason error) {
	if r.policy.Refused == nil {
		r.policy.Refused = map[int]bool{}
		r.done.refusal = fmt.Sprintf("it stays, because the provider cannot return to %s of revision %d: %s",
			target.Version, target.Number, reason)
	}

	r.policy.Refused[target.Number] = true
}

// leavesRevision reports whether a failed action has left a failed revision in the history, from which
// the next action follows.
func leavesRevision(result release.Result, err error) bool {
	var (
		rejected    *cluster.RejectedError
		unavailable *cluster.UnavailableError
		remove      *cluster.RemoveError
	)

	return result.Revision != 0 &&
		(errors.As(err, &rejected) || errors.As(err, &unavailable) || errors.As(err, &remove))
}
