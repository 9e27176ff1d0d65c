package reconcile

import (
	"context"
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/reconcile/report"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/cluster"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// goal is the desired state of the release.
type goal struct {
	// version that users know it by.
	version string
	// digest identifies it in the release's history.
	digest string
	// action counts it where there is a release already.
	action metrics.Action
	// apply takes the one Helm action that reaches the goal from a state; nil if it cannot be planned.
	apply func(context.Context, state.Observed) (release.Result, error)
}

// checking is what is done once there is a plan.
const checking = "Checking and applying what the resource asks for"

// makePlan plans what the resource asks for, and stores a chart that is new.
func (r *run) makePlan(ctx context.Context) report.Result {
	request := plan.Request{
		Provider: r.provider, Scope: r.target.Client, Selected: r.selection.Version, Refresh: r.policy.Requested,
	}

	r.status.doing(ctx, "Getting the provider from its source")

	planned, err := r.Planner.Plan(ctx, request)
	r.change.plan = planned

	r.status.pause(ctx, r.provider)

	if planned.Version != "" {
		r.note(report.Resolved(planned.Version))
	}

	if planned.Chart != nil {
		if result := r.saveChart(ctx); result.Ends() {
			return r.planFailed(result)
		}
	}

	if err != nil {
		return r.planFailed(failed(err, fetching))
	}

	if planned.SourceErr != nil {
		r.change.problem = failed(planned.SourceErr, fetching)
	}

	r.note(report.Lacks(planned.MissingVariables))

	if r.memory.unannounced {
		r.memory.unannounced = false
		r.emit(r.provider, report.Ignored(planned.Warnings.Ignored))
		r.emit(r.provider, report.Unpublished(r.progress().Flags))
	}

	r.change.plan.Release.Owner = r.self
	r.status.doing(ctx, checking)

	return r.setGoal()
}

// setGoal sets the goal that the plan describes.
func (r *run) setGoal() report.Result {
	digest, err := r.change.plan.Release.Digest()
	if err != nil {
		return failed(err, applying)
	}

	r.change.goal = goal{
		version: r.change.plan.Chart.Version(),
		digest:  digest,
		action:  metrics.ActionUpgrade,
		apply:   r.applyPlan,
	}

	return report.Result{}
}

// saveChart stores the chart of the plan.
func (r *run) saveChart(ctx context.Context) report.Result {
	if err := r.Planner.Charts.Save(ctx, r.provider, r.change.plan.Chart); err != nil {
		return failed(err, fetching)
	}

	if outdated := r.change.plan.Chart.Outdated; outdated != nil {
		r.emit(r.provider, report.SourceUnavailable(r.change.plan.Chart.Digest, outdated.Error()))
	}

	return report.Result{}
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
	r.change.plan.Release.Request = r.asked()

	if r.change.plan.Release.Own, err = r.ownKinds(ctx); err != nil {
		return nil, err
	}

	options.Known = r.installed.history.Revisions

	return r.target.Releases.Prepare(ctx, r.change.plan.Release, observed, options)
}

// applyPlan installs or upgrades the release. Its namespace gets the labels and annotations of the
// provider's Namespace, pod security levels among them.
func (r *run) applyPlan(ctx context.Context, observed state.Observed) (_ release.Result, err error) {
	if r.change.prepared == nil {
		r.change.prepared, err = r.preparePlan(ctx, observed, release.PrepareOptions{})
		if err != nil {
			return release.Result{}, err
		}
	}

	labels, annotations, err := chartgen.Namespace(r.change.plan.Release.Chart, r.change.plan.Release.Values)
	if err != nil {
		return release.Result{}, err
	}

	if err := r.target.MarkNamespace(ctx, r.change.plan.Release.Release.Namespace, labels, annotations); err != nil {
		return release.Result{}, err
	}

	if err := r.recordAdopted(ctx); err != nil {
		return release.Result{}, err
	}

	return r.change.prepared.Apply(r.announce(ctx))
}

// compareRelease compares the release with the goal.
func (r *run) compareRelease(ctx context.Context) report.Result {
	r.installed.history.Lost = r.recordsLost(ctx)
	r.assess()

	if r.change.plan.Chart != nil && !r.change.release.Keeps() {
		r.note(report.Uses(r.change.plan.Chart.Status(r.provider.GetStatus().Chart)))
	}

	return report.Result{}
}

// announce returns a function that records in the status which revision is about to be created: a record whose
// resource does not know of it proves nothing, also if the operator stops before the end of this run.
func (r *run) announce(ctx context.Context) state.Announce {
	return func(announced state.Announcement) error {
		announcement := report.Announces(announced)
		r.note(announcement)

		return r.status.record(ctx, announcement)
	}
}

// forgetAnnounced removes the announcement of a revision that was not created. Only if its record could not be
// written, it is not known whether it exists.
func (r *run) forgetAnnounced(result release.Result, err error) {
	if err != nil && result.Revision == 0 && !errors.As(err, new(*storage.Error)) {
		r.note(report.NotCreated())
	}
}

// apply takes the action that reaches the goal. Whether the action succeeded is read from the history
// afterwards.
func (r *run) apply(ctx context.Context) report.Result {
	log := ctrl.LoggerFrom(ctx).WithValues("release", r.installed.history.Release.Name, "version", r.change.goal.version)
	log.Info("Applying the release", "state", r.change.release.State.State, "found", r.change.release.State.Message)

	action := r.change.goal.action
	if r.change.release.State.State == state.Absent {
		action = metrics.ActionInstall

		r.note(report.InstallsAgain())
	}

	result, err := r.change.goal.apply(ctx, r.change.release.State)
	r.target.Health.MarkVerified(result.Applied)
	r.emit(r.provider, report.Adopted(result.Adopted))

	if result.Revision != 0 {
		log.Info("Applied the release", "revision", result.Revision, "status", result.Status)
	}

	r.done.applied = err == nil || result.Revision != 0

	r.forgetAnnounced(result, err)

	r.Metrics.CountReleaseAction(r.provider, action, err)

	if leavesRevision(result, err) {
		r.done.failure = err
		return report.Result{}
	}

	if unknown := new(cluster.UnknownKindError); errors.As(err, &unknown) {
		return report.First(r.awaitCRDs(ctx), failed(err, applying))
	}

	return failed(err, applying)
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
