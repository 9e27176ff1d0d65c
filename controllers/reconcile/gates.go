package reconcile

import (
	"context"
	"errors"
	"fmt"

	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/foreign"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/preflight"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/rollback"
)

// checkGates makes sure that the plan may be applied: its contract fits the other providers', its
// variables have values, and the APIs that it needs are served. Core's health is awaited only after
// the CRDs, because these take a while to be served.
func (r *run) checkGates(ctx context.Context) Result {
	defer r.Metrics.TimeStep(r.Type, metrics.StepPreflight)()

	if !r.applies() {
		return Result{}
	}

	err := r.Preflight.Installation(ctx, preflight.Input{
		Provider:         r.provider,
		Mapper:           r.target.Client.RESTMapper(),
		Contract:         r.plan.Chart.Contract(),
		RequiredKinds:    r.plan.Chart.RequiredKinds(),
		MissingVariables: r.plan.MissingVariables,
	})
	if err != nil {
		return failed(err, applying)
	}

	if !r.needsCore() {
		return Result{}
	}

	err = r.Preflight.CoreReady(ctx, r.provider)
	if core := new(preflight.Error); errors.As(err, &core) && core.AllowCRDs {
		r.coreProblem = core
		return Result{}
	}

	return failed(err, applying)
}

// needsCore reports whether core must be healthy before the plan is applied: for a first install, and
// for another contract.
func (r *run) needsCore() bool {
	if len(r.installed.history.Revisions) == 0 {
		return true
	}

	installed := r.installed.record

	return installed != nil && installed.Contract != "" && installed.Contract != r.plan.Chart.Contract()
}

// prepareBefore prepares the installation or upgrade before its CRDs are applied, so that nothing is touched
// if a patch matches nothing, an object belongs to another release, or the API server would refuse one.
//
// New CRDs touch nothing. If the installation has to wait for core, it is prepared only when it need not.
func (r *run) prepareBefore(ctx context.Context, planned *crds.Plan) Result {
	if !r.applies() || r.unobserved != nil {
		return Result{}
	}

	if _, updated := planned.Changes(); r.coreProblem != nil && len(updated) == 0 {
		return Result{}
	}

	var err error

	r.prepared, err = r.preparePlan(ctx, r.state, release.PrepareOptions{CRDsFollow: true})

	return failed(err, applying)
}

func (r *run) preparePlan(
	ctx context.Context, observed state.Observed, options release.PrepareOptions,
) (_ *release.Prepared, err error) {
	r.plan.Release.Request = plan.Asked(r.provider)

	if r.plan.Release.Own, err = r.ownKinds(ctx); err != nil {
		return nil, err
	}

	return r.target.Releases.Prepare(ctx, r.plan.Release, observed, options)
}

// recordAdopted records with the revision which version another program has installed before.
func (r *run) recordAdopted(ctx context.Context) error {
	version, err := foreign.Version(ctx, r.target.APIReader, r.provider, r.prepared.Adopts())
	r.prepared.SetAdoptedVersion(version)

	return err
}

// waitForCore ends the change while core is not healthy and the plan needs it to be. What it lets pass
// has passed all gates.
func (r *run) waitForCore(context.Context) Result {
	if r.coreProblem != nil {
		return failed(r.coreProblem, applying)
	}

	if !r.applies() && r.state.State != state.InSync {
		return Result{}
	}

	r.passed = true

	return Result{}
}

// checkRollback makes sure that the provider may return to the revision that spec.release.rollbackTo
// names. Whether it exists, and can be read, is Helm's to say.
func (r *run) checkRollback(ctx context.Context) Result {
	if !r.applies() {
		return Result{}
	}

	to, exists := r.installed.history.Find(int(*plan.ReleaseSpec(r.provider.GetSpec()).RollbackTo))
	if !exists {
		return Result{}
	}

	err := r.checkTarget(ctx, to)
	if errors.As(err, new(*release.CorruptError)) {
		return Result{}
	}

	return failed(err, applying)
}

// checkTarget checks whether the provider may return to a revision. If it must not, rollback.Refuses
// the error.
func (r *run) checkTarget(ctx context.Context, revision state.Revision) error {
	checker := rollback.Checker{Planner: r.Planner, Preflight: r.Preflight}
	return checker.Check(ctx, r.provider, r.target, revision)
}

// decideRollback decides what to do about a failed revision. It rules out the targets of a rollback that
// the provider must not return to, and keeps the reason of the newest.
func (r *run) decideRollback(ctx context.Context, digest string, observed state.Observed) (state.Decision, error) {
	for {
		decision := state.Next(r.installed.history, digest, observed, r.carePolicy())
		if decision.Action != state.Rollback || r.policy.SpecChanged {
			return decision, nil
		}

		err := r.checkTarget(ctx, decision.Revision)
		if !rollback.Refuses(err) {
			return decision, err
		}

		r.refuse(decision.Revision, err)
	}
}

// refuse rules out a target of a rollback.
func (r *run) refuse(target state.Revision, reason error) {
	if r.policy.Refused == nil {
		r.policy.Refused = map[int]bool{}
		r.refusal = fmt.Sprintf("it stays, because the provider cannot return to %s of revision %d: %s",
			target.Version, target.Number, reason)
	}

	r.policy.Refused[target.Number] = true
}

// leavesRevision reports whether a failed action has left a failed revision in the history, from which
// the next action follows.
func leavesRevision(result release.Result, err error) bool {
	var (
		rejected    *release.RejectedError
		unavailable *release.UnavailableError
		remove      *release.RemoveError
	)

	return result.Revision != 0 &&
		(errors.As(err, &rejected) || errors.As(err, &unavailable) || errors.As(err, &remove))
}
