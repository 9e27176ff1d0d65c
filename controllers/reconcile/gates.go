package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/autoupgrade"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/preflight"
	"github.com/capstan-project/capstan/controllers/reconcile/report"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/cluster"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// checkGates makes sure that the plan may be applied: its contract fits the other providers', its
// variables have values, and the APIs that it needs are served. Core's health is awaited only after
// the CRDs, because these take a while to be served.
func (r *run) checkGates(ctx context.Context) report.Result {
	defer r.Metrics.TimeStep(r.Type, metrics.StepPreflight)()

	if !r.applies() {
		return report.Result{}
	}

	err := r.Preflight.Installation(ctx, preflight.Input{
		Provider:         r.provider,
		Mapper:           r.target.Client.RESTMapper(),
		Contract:         r.plan.Chart.Contract(),
		RequiredKinds:    r.plan.Chart.RequiredKinds(),
		MissingVariables: r.plan.MissingVariables,
	})

	// Until they are served, changes of their CRDs bring the resource back.
	r.target.CRDs.Await(v1alpha2.Label(r.provider), preflight.MissingKinds(err)...)

	if err != nil {
		return failed(err, applying)
	}

	if !r.needsCore() {
		return report.Result{}
	}

	err = r.Preflight.CoreReady(ctx, r.provider)
	if core := new(preflight.Error); errors.As(err, &core) && core.AllowCRDs {
		r.coreProblem = core
		return report.Result{}
	}

	return failed(err, applying)
}

// needsCore reports whether core must be healthy before the plan is applied: for a first install, and
// for another contract. A plain Helm chart has no contract: cert-manager's is installed before core.
func (r *run) needsCore() bool {
	if r.plan.Chart.Contract() == "" {
		return false
	}

	confirmed := func(revision state.Revision) bool { return revision.Confirmed }
	if !slices.ContainsFunc(r.installed.history.Revisions, confirmed) {
		return true
	}

	installed := r.installed.record

	return installed != nil && installed.Contract != "" && installed.Contract != r.plan.Chart.Contract()
}

// selectVersion selects the version that the range of the resource resolves to, if the operator may do so.
func (r *run) selectVersion(ctx context.Context) report.Result {
	selection, err := r.Automatic.Select(ctx, r.provider, r.forUpgrade())
	r.selection = selection

	if err == nil {
		r.note(report.WillUpgrade(selection.Pending))
	}

	return failed(err, fetching)
}

// forUpgrade returns what automatic upgrades have to know of what is installed.
func (r *run) forUpgrade() autoupgrade.Installed {
	found := autoupgrade.Installed{History: r.installed.history}

	if record := r.installed.record; record != nil {
		found.Contract, found.Description = record.Contract, record.Description
	}

	switch {
	case r.provider.GetSpec().Paused:
		found.Obstacle = "spec.paused is true"
	case !r.installed.healthy():
		found.Obstacle = "the provider is not healthy"
	case r.deviations != nil && len(leftDeviations(*r.deviations)) > 0:
		found.Obstacle = "objects have drifted"
	}

	return found
}

// checkUpgrade makes sure that the plan of an automatic upgrade is what was selected.
func (r *run) checkUpgrade(context.Context) report.Result {
	if !r.selection.Starts() || r.inputsProblem != nil {
		return report.Result{}
	}

	return failed(r.selection.Check(r.plan.Version, r.plan.Chart.Contract(), r.installed.record.Contract), fetching)
}

// takeBack returns to the version that is installed if a check prevents an automatic upgrade that was about to start,
// and nothing was changed: that the operator cannot upgrade it makes the provider no less ready.
func (r *run) takeBack(result report.Result) bool {
	stopped := result.Outcome == report.Stalled || r.inputsProblem != nil && result.Outcome != report.Repeated
	if !r.selection.Starts() || !stopped || r.applied || r.crdsChanged {
		return false
	}

	if !result.Ends() {
		result = *r.inputsProblem
	}

	r.selection = r.Automatic.Block(r.provider, r.selection, result.Message, r.installed.history)
	r.note(report.WillUpgrade(r.selection.Pending))
	r.note(report.Resolved(r.selection.Version))
	r.prepared, r.inputsProblem, r.coreProblem, r.crdsChecked = nil, nil, nil, ""

	return true
}

// announceUpgrade makes an automatic upgrade known before it starts: the status is what other providers' upgrades
// wait for, also if the operator stops before the end of this run.
func (r *run) announceUpgrade(ctx context.Context) report.Result {
	if !r.selection.Starts() || !r.applies() {
		return report.Result{}
	}

	started := r.selection.Started(r.installed.revision.Number, r.Clock.Now())

	err := r.status.record(ctx, report.Upgrades(started))
	if err == nil {
		r.emit(r.provider, report.UpgradeStarted(r.selection.String()))
	}

	return failed(err, applying)
}

// prepareBefore prepares the installation or upgrade before its CRDs are applied, so that nothing is touched
// if a patch matches nothing, an object belongs to another release, or the API server would refuse one.
//
// New CRDs touch nothing. If the installation has to wait for core, it is prepared only when it need not.
func (r *run) prepareBefore(ctx context.Context, planned *crds.Plan) report.Result {
	if !r.applies() || r.unobserved != nil {
		return report.Result{}
	}

	if _, updated := planned.Changes(); r.coreProblem != nil && len(updated) == 0 {
		return report.Result{}
	}

	var err error

	r.prepared, err = r.preparePlan(ctx, r.state, release.PrepareOptions{CRDsFollow: true})

	return failed(err, applying)
}

func (r *run) preparePlan(
	ctx context.Context, observed state.Observed, options release.PrepareOptions,
) (_ *release.Prepared, err error) {
	r.plan.Release.Request, options.Since = r.asked(), r.existed()

	if r.plan.Release.Own, err = r.ownKinds(ctx); err != nil {
		return nil, err
	}

	return r.target.Releases.Prepare(ctx, r.plan.Release, observed, options)
}

// awaitTurn ends the change while another provider has to change its version first. It is called before checks that
// cost requests, which would be repeated, and as the last check, because resources that are changed together arrive one
// after the other.
func (r *run) awaitTurn(ctx context.Context) report.Result {
	installed := r.installed.record
	if !r.applies() || installed != nil && installed.AppVersion == r.plan.Chart.Version() {
		return report.Result{}
	}

	if result := r.settle(); installed != nil && result.Ends() {
		return result
	}

	return failed(r.Preflight.Turn(ctx, r.provider, r.plan.Chart.Contract()), applying)
}

// settleTime is how soon after a provider core may change and still comes before it. It usually takes longer to get
// a new version from its source.
const settleTime = 500 * time.Millisecond

// settle ends a run in which core would not have changed yet if it were changed together with the provider.
func (r *run) settle() report.Result {
	if r.Type == v1alpha2.CoreProviderType || !r.policy.SpecChanged {
		return report.Result{}
	}

	until := r.arrivals.of(r.provider, r.began).Add(settleTime)
	if !time.Now().Before(until) {
		return report.Result{}
	}

	return report.Result{Outcome: report.Repeated, At: until}
}

// awaitTurnBefore is awaitTurn before CRDs are applied.
func (r *run) awaitTurnBefore(ctx context.Context, _ *crds.Plan) report.Result {
	return r.awaitTurn(ctx)
}

// waitForCore ends the change while core is not healthy and the plan needs it to be. What it lets pass
// has passed all gates.
func (r *run) waitForCore(context.Context) report.Result {
	if r.coreProblem != nil {
		return failed(r.coreProblem, applying)
	}

	if !r.applies() && r.state.State != state.InSync {
		return report.Result{}
	}

	r.passed = true

	return report.Result{}
}

// checkRollback makes sure that the provider may return to the revision that spec.release.rollbackTo
// names. Whether it exists, and can be read, is Helm's to say.
func (r *run) checkRollback(ctx context.Context) report.Result {
	if !r.applies() {
		return report.Result{}
	}

	to, exists := r.installed.history.Find(int(*plan.ReleaseSpec(r.provider.GetSpec()).RollbackTo))
	if !exists {
		return report.Result{}
	}

	if !to.Confirmed {
		return failed(&unconfirmedError{release: r.installed.history.Release, revision: to.Number}, applying)
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
		r.refusal = fmt.Sprintf("it stays, because the provider cannot return to %s of revision %d: %s",
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
