package reconcile

import (
	"context"
	"errors"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/foreign"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/reconcile/decide"
	"github.com/capstan-project/capstan/controllers/reconcile/report"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// observeInstalled observes the release, unless nothing is installed for certain: hundreds of providers
// that wait for core then cost no request.
func (r *run) observeInstalled(ctx context.Context) report.Result {
	known := r.provider.GetStatus().Release != nil
	if known || r.target.MayHaveRelease(ctx, plan.ReleaseKey(r.provider)) {
		return r.observe(ctx)
	}

	return report.Result{}
}

// observe reads the release's history, and the record of its newest revision.
func (r *run) observe(ctx context.Context) report.Result {
	defer r.Metrics.TimeStep(r.Type, metrics.StepRelease)()

	key := plan.ReleaseKey(r.provider)

	history, err := r.target.Releases.Observe(ctx, key)
	if err != nil {
		return failed(err, applying)
	}

	r.policy.Now = time.Now()
	foreign.Confirm(r.provider, r.self, history)
	r.installed = installed{observed: true, history: history}

	newest, exists := history.Newest()
	if !exists {
		return report.Result{}
	}

	r.installed.revision = newest

	record, err := r.target.Releases.Read(ctx, key, newest)

	corrupt := errors.As(err, new(*storage.CorruptError))
	if err != nil && !corrupt {
		return failed(err, applying)
	}

	if err := r.checkOwner(record); err != nil {
		r.installed = installed{observed: true, foreign: err}
		return report.Result{}
	}

	if corrupt {
		// The next revision replaces it; until then nothing is known to care for.
		history.Revisions[0].Unreadable = true
		r.installed.revision.Unreadable = true

		return report.Result{}
	}

	if err := foreign.ConfirmNewest(ctx, r.provider, r.target.Releases, history, record); err != nil {
		return failed(err, applying)
	}

	newest, _ = history.Newest()
	if !newest.Confirmed() {
		r.installed = installed{
			observed:    true,
			history:     history,
			unconfirmed: foreign.Unconfirmed(r.provider, key, newest, record),
		}

		// No watch tells when the objects are what the record says.
		r.wakeAfter(confirmAfter(r.policy.Now.Sub(newest.Changed)))

		return report.Result{}
	}

	r.installed.revision, r.installed.record = newest, record

	return report.Result{}
}

// maxConfirm is longer than maxAdvance, because all objects are read.
const maxConfirm = 5 * time.Minute

// confirmAfter returns how long to wait before the cluster is compared again with a record that is not confirmed, by
// the time since that was written.
func confirmAfter(age time.Duration) time.Duration { return min(max(age/4, minAdvance), maxConfirm) }

// checkHealth reads the health of the revision's objects from the watches, which wake the provider
// when it changes.
func (r *run) checkHealth(ctx context.Context) report.Result {
	defer r.Metrics.TimeStep(r.Type, metrics.StepHealth)()

	if err := r.findWaiting(ctx); err != nil {
		return failed(err, applying)
	}

	found, err := r.target.Health.Check(ctx, r.owner(), r.installed.record.Needed(r.installed.revision))
	if err != nil {
		return failed(err, applying)
	}

	found.Objects = withWaiting(found.Objects, r.installed.waiting)
	r.installed.health = &found

	return failed(r.findReplicas(ctx), applying)
}

// owner returns the release whose objects are checked.
func (r *run) owner() health.Owner {
	return health.Owner{
		Provider:  v1alpha2.Label(r.provider),
		Release:   v1alpha2.ReleaseName(r.provider),
		Namespace: r.provider.GetNamespace(),
		Reader:    r.target.Client,
	}
}

// markFinished records in the history which Jobs have completed, so that they are not run again.
func (r *run) markFinished(ctx context.Context) report.Result {
	finished := r.installed.health.Finished()
	version, err := r.target.Releases.MarkFinished(ctx, plan.ReleaseKey(r.provider), r.installed.revision, finished)

	return r.marked(version, err, func(newest *state.Revision) { storage.Finish(newest, finished) })
}

// markHealthy records in the history that the revision was healthy, so that a later one can be rolled
// back to it.
func (r *run) markHealthy(ctx context.Context) report.Result {
	version, err := r.target.Releases.MarkHealthy(ctx, r.installed.history.Release, r.installed.revision)

	return r.marked(version, err, func(newest *state.Revision) { newest.Healthy = true })
}

// markFailed marks the revision failed.
func (r *run) markFailed(ctx context.Context, step decide.Step) report.Result {
	history, revision := r.installed.history, r.installed.revision

	ctrl.LoggerFrom(ctx).Info("The revision failed",
		"release", history.Release.Name, "revision", revision.Number, "reason", step.Reason)

	err := r.announce(ctx)(state.Announcement{
		Revision: revision.Number, Digest: r.installed.record.Digest, Status: state.StatusFailed, Failure: step.Failure,
	})
	if err != nil {
		return failed(err, applying)
	}

	r.installed.stale = true

	return failed(r.target.Releases.MarkFailed(ctx, history.Release, revision, step.Failure, step.Reason), applying)
}
