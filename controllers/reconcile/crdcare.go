package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/supply/store"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/reconcile/report"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/cluster"
	"github.com/capstan-project/capstan/controllers/release/drift"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// careForCRDs applies the CRDs of the installed chart that are missing or were changed, and waits until they are
// served, when the change ended before it got to them.
func (r *run) careForCRDs(ctx context.Context) report.Result {
	installed, result := r.installedChart(ctx)
	if installed == nil {
		return result
	}

	defer r.Metrics.TimeStep(r.Type, metrics.StepCRDs)()

	planned, result := r.planCRDs(ctx, installed)
	if result.Ends() {
		return result
	}

	if err := r.target.CRDs.CheckUnmanaged(ctx, planned); err != nil {
		return failed(err, applying)
	}

	version := installed.Metadata.AppVersion

	if planned.HasChanges() {
		if result := r.applyChanges(ctx, planned, version); result.Ends() {
			return result
		}
	}

	if result := r.correctCRDs(ctx, planned, version); result.Ends() {
		return result
	}

	return r.served(ctx, installed)
}

// compareCRDs reports which CRDs of the installed chart another program has changed, and changes nothing.
func (r *run) compareCRDs(ctx context.Context) report.Result {
	installed, result := r.installedChart(ctx)
	if installed == nil {
		return result
	}

	planned, result := r.planCRDs(ctx, installed)
	if result.Ends() {
		return result
	}

	r.crdDeviations = deviationsOf(planned)

	return report.Result{}
}

// installedChart returns the chart of the newest revision, with its CRDs as they were applied for it; nil if it
// is not deployed or cannot be read, is no longer stored, or if its CRDs have other patches now.
func (r *run) installedChart(ctx context.Context) (*chart.Chart, report.Result) {
	revision, record := r.installed.revision, r.installed.record
	if record == nil || revision.ChartDigest == "" || revision.Status != state.StatusDeployed {
		return nil, report.Result{}
	}

	applied, err := r.Planner.Charts.InstalledCRDs(ctx, r.provider, revision.Version, revision.ChartDigest,
		record.PatchedCRDs)
	if errors.Is(err, store.ErrNotFound) {
		return nil, report.Result{}
	}

	if err != nil {
		return nil, failed(err, fetching)
	}

	return applied, report.Result{}
}

// correctCRDs corrects the CRDs of a version that another program has changed, as spec.release.drift says.
// A correction that would break objects waits for a user, and keeps nothing else from being applied.
func (r *run) correctCRDs(ctx context.Context, planned *crds.Plan, version string) report.Result {
	policy := driftPolicy(r.provider.GetSpec())
	if policy == v1alpha2.DriftOff {
		return report.Result{}
	}

	r.crdDeviations = deviationsOf(planned)

	if policy != v1alpha2.DriftCorrect {
		return report.Result{}
	}

	now := time.Now()

	for i, d := range planned.Drifted {
		found := &r.crdDeviations[i]
		if !r.isDue(found.Object, now) {
			r.explainLeft(found, nil, now)
			continue
		}

		result := r.applyChanges(ctx, planned.Correction(d.Name), version)
		if result.Outcome == report.Waiting {
			return result // objects are being rewritten first
		}

		found.corrected = !result.Ends()
		r.memory.corrections.Record(r.subject(found.Object), now, found.corrected)

		if !found.corrected {
			r.explainLeft(found, errors.New(result.Message), now)
		}
	}

	r.announceCorrections(ctx, r.crdDeviations)

	return report.Result{}
}

// deviationsOf returns the CRDs of a plan that another program has changed.
func deviationsOf(planned *crds.Plan) []deviation {
	found := make([]deviation, 0, len(planned.Drifted))

	for _, d := range planned.Drifted {
		found = append(found, deviation{Difference: drift.Difference{
			Object: object.Key{
				GroupVersionKind: apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), Name: d.Name,
			},
			Fields: d.Fields,
		}})
	}

	return found
}

// ownKinds returns the kinds of which the release's objects wait for its manager.
func (r *run) ownKinds(ctx context.Context) (cluster.OwnKinds, error) {
	return r.target.CRDs.OwnKinds(ctx, v1alpha2.Label(r.provider))
}

// returnTo rolls the release back.
func (r *run) returnTo(
	ctx context.Context, options release.RollbackOptions, observed state.Observed,
) (result release.Result, err error) {
	if options.Own, err = r.ownKinds(ctx); err != nil {
		return release.Result{}, err
	}

	options.Announce = r.announce(ctx)
	options.Known = r.installed.history.Revisions

	return r.target.Releases.Rollback(ctx, plan.ReleaseKey(r.provider), options, observed)
}

// isStaged reports whether objects of the newest revision wait for others.
func (i *installed) isStaged() bool {
	return i.revision.Staged && i.revision.Status == state.StatusDeployed
}

// settled returns the objects of the revision that do not wait for others, and should exist.
func (i *installed) settled() []object.Key {
	return slices.DeleteFunc(i.record.Needed(i.revision), func(o object.Key) bool {
		return waits(i.waiting, o)
	})
}

// findWaiting finds the objects of a staged revision that wait for others, or were never applied because it has failed.
func (r *run) findWaiting(ctx context.Context) error {
	if !r.installed.revision.Staged {
		return nil
	}

	own, err := r.ownKinds(ctx)
	if err != nil {
		return err
	}

	r.installed.waiting = r.target.Releases.Waiting(r.installed.record, r.installed.revision, own)

	return nil
}

// advance takes the next step with a revision that runs hooks, or with a staged one once the objects that others wait
// for are healthy. What is not possible yet, because a webhook does not answer or a finalizer is left, is tried again:
// it is no failure of the revision before its deadline.
func (r *run) advance(ctx context.Context) report.Result {
	own, err := r.ownKinds(ctx)
	if err != nil {
		return failed(err, applying)
	}

	history, revision := r.installed.history, r.installed.revision

	result, err := r.target.Releases.Advance(ctx, history.Release, revision, release.AdvanceOptions{
		Own: own, Known: history.Revisions, Announce: r.announce(ctx),
	})
	r.target.Health.MarkVerified(result.Applied)

	if errors.As(err, new(*cluster.HookError)) {
		return failed(err, applying)
	}

	problems := advanceProblems(err)
	if len(problems) > 0 && !revision.RunsHooks() {
		r.installed.health.Objects = withHealth(r.installed.health.Objects, problems)
		r.installed.removing = errors.As(err, new(*cluster.RemainingError))
		r.Wake(v1alpha2.Label(r.provider), r.provider.GetNamespace(), advanceAfter(time.Since(revision.Created)))

		return report.Result{}
	}

	if revision.RunsHooks() {
		r.Metrics.CountReleaseAction(r.provider, actionOf(revision.Status), err)
	}

	hooked := revision.RunsHooks() && result.Revision != 0 // the result is recorded
	if err != nil && !hooked && !leavesRevision(result, err) && !errors.As(err, new(*cluster.ConflictError)) {
		return failed(err, applying)
	}

	r.done.failure = err
	r.emit(r.provider, report.Adopted(result.Adopted))

	if err == nil {
		newest := &r.installed.revision
		newest.Staged, newest.Wave, newest.Unpruned = result.Staged, result.Wave, result.Unpruned
		newest.Changed = time.Time{} // its record tells the time

		r.noteMarks()
	}

	r.done.advanced, r.installed.stale = true, true

	return report.Result{}
}

// actionOf returns how metrics count the action that a pending revision results from.
func actionOf(status state.Status) metrics.Action {
	switch status {
	case state.StatusPendingInstall:
		return metrics.ActionInstall
	case state.StatusPendingRollback:
		return metrics.ActionRollback
	}

	return metrics.ActionUpgrade
}

// comeBack brings the provider back at once if the next step with the revision can be taken already: no watch shows
// when objects without a status become healthy.
func (r *run) comeBack() {
	if r.done.advanced && r.installed.isStaged() && r.installed.othersHealthy() {
		r.Wake(v1alpha2.Label(r.provider), r.provider.GetNamespace(), 0)
	}
}

// lacksManager reports whether the next step with a staged revision needs the manager that the revision has paused:
// to admit objects of its own kinds, or to process the finalizers of those that are deleted. A resource that asks for
// a pause later may wait for something else to change.
func (r *run) lacksManager() bool {
	return r.installed.revision.Paused && (len(r.installed.waiting) == 0 || r.installed.waiting[0].Own)
}

// problem describes why objects are not healthy. Those that wait for others are named only if there is no other cause.
func (i *installed) problem() string {
	if i.othersHealthy() {
		return i.health.Message()
	}

	causes := slices.DeleteFunc(slices.Clone(i.health.Objects), func(h health.ObjectHealth) bool {
		return waits(i.waiting, h.Object)
	})

	return health.Report{Objects: causes}.Message()
}

// othersHealthy reports whether all objects but those that wait for them are known to be healthy.
func (i *installed) othersHealthy() bool {
	return i.health != nil && !slices.ContainsFunc(i.health.Unhealthy(), func(h health.ObjectHealth) bool {
		return !waits(i.waiting, h.Object)
	})
}
