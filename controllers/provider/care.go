package provider

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
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// cared is what care has done with the newest revision, which it does once.
type cared struct {
	revision                             int
	pruned, restored, finished, advanced bool
	// rolledBack is set once another revision was rolled back to this one.
	rolledBack bool

	// Problems with drift and with what could not be deleted keep care from nothing else.
	drift, left Result
}

// care takes care of what is installed until nothing is left to do with the newest revision.
func (r *run) care(ctx context.Context) Result {
	did := cared{revision: r.installed.revision.Number}

	for r.installed.record != nil {
		if result := r.careOnce(ctx, &did); result.Ends() {
			return first(did.drift, result, did.left)
		}

		if !r.installed.stale {
			r.requeueStaged()
			break
		}

		if result := r.observe(ctx); result.Ends() {
			return first(did.drift, result, did.left)
		}

		if newest := r.installed.revision.Number; newest != did.revision {
			did = cared{revision: newest, rolledBack: did.rolledBack, drift: did.drift, left: did.left}
		}
	}

	return first(did.drift, did.left)
}

// careOnce takes care of the newest revision as it was read. It ends early once that is stale.
func (r *run) careOnce(ctx context.Context, did *cared) Result {
	for _, part := range []func(context.Context, *cared) Result{r.restore, r.complete, r.judge} {
		if result := part(ctx, did); result.Ends() || r.installed.stale {
			return result
		}
	}

	return Result{}
}

// restore makes the objects what the newest revision says, and reads their health.
func (r *run) restore(ctx context.Context, did *cared) Result {
	newest := r.installed.revision

	// What a staged revision does not have is deleted after its last wave.
	if r.leaves() && newest.Status == v1alpha2.RevisionDeployed && !r.installed.isStaged() && !did.pruned {
		did.pruned = true
		if did.left = r.prune(ctx); r.installed.stale {
			return Result{}
		}
	}

	if r.comparesObjects() {
		did.drift = r.correctDrift(ctx)
	}

	if result := r.checkHealth(ctx); result.Ends() {
		return result
	}

	// What was lost after the comparison is drift, too.
	if !r.comparesObjects() || !r.lostMeanwhile() || did.restored {
		return Result{}
	}

	did.restored = true
	did.drift = r.correctDrift(ctx)

	return r.checkHealth(ctx)
}

// complete takes the next step with a revision that is healthy so far.
func (r *run) complete(ctx context.Context, did *cared) Result {
	if len(r.installed.health.Finished()) > 0 && !did.finished {
		did.finished = true

		r.markFinished()
	}

	if r.installed.mayAdvance() && !did.advanced {
		did.advanced = true

		if result := r.advance(ctx); result.Ends() || r.installed.stale {
			return result
		}
	}

	if r.installed.awaitsHealth() && r.installed.healthy() {
		r.markHealthy()
	}

	return Result{}
}

// judge fails a revision that does not become healthy, and rolls back one that has failed.
func (r *run) judge(ctx context.Context, did *cared) Result {
	verdict := r.verdict()

	switch {
	case verdict == nil:
		return r.rollBackFailed(ctx, did)
	case !verdict.until.IsZero():
		r.wakeAt(verdict.until)
		return Result{}
	case verdict.leave:
		r.leftToChange = true
		return Result{}
	}

	return r.markFailed(ctx, verdict)
}

// rollBackFailed rolls a failed revision back to the last healthy one that the provider may return to, once in a
// reconcile.
func (r *run) rollBackFailed(ctx context.Context, did *cared) Result {
	for {
		target, rolls, leave := r.rollbackTarget(r.target.Releases.Rules())
		r.leftToChange = r.leftToChange || leave

		if !rolls || did.rolledBack {
			return Result{}
		}

		if result := r.checkReturn(ctx, target); result.Ends() {
			return result
		}

		if r.policy.Refused[target.Number] {
			continue
		}

		result := r.rollBack(ctx, target)
		if !r.policy.Refused[target.Number] {
			did.rolledBack = true
			return result
		}
	}
}

// observeInstalled observes the release, unless nothing is installed for certain: hundreds of providers
// that wait for core then cost no request.
func (r *run) observeInstalled(ctx context.Context) Result {
	if err := r.findLost(ctx); err != nil {
		return failed(err, applying)
	}

	known := r.provider.GetStatus().Release != nil
	if known || r.target.MayHaveRelease(ctx, plan.ReleaseKey(r.provider)) {
		return r.observe(ctx)
	}

	return Result{}
}

// observe reads the release's history, and the record of its newest revision.
func (r *run) observe(ctx context.Context) Result {
	defer r.Metrics.TimeStep(r.Type, metrics.StepRelease)()

	key := plan.ReleaseKey(r.provider)

	history, err := r.target.Releases.Observe(ctx, key)
	if err != nil {
		return failed(err, applying)
	}

	r.policy.Now = time.Now()
	history = foreign.Confirm(r.provider, history)
	r.installed = installed{observed: true, history: history}

	newest, exists := history.Newest()
	if !exists {
		return Result{}
	}

	r.installed.revision = newest

	record, err := r.target.Releases.Read(ctx, key, newest)

	corrupt := errors.As(err, new(*storage.CorruptError))
	if err != nil && !corrupt {
		return failed(err, applying)
	}

	if r.installed.owner, err = foreign.Owner(ctx, r.target.Releases, history, record); err != nil {
		return failed(err, applying)
	}

	if err := r.checkOwner(record); err != nil {
		r.installed = installed{observed: true, foreign: err}
		return Result{}
	}

	if corrupt {
		// The next revision replaces it; until then nothing is known to care for.
		history.Revisions[0].Unreadable = true
		r.installed.revision.Unreadable = true

		return Result{}
	}

	foreign.ConfirmNewest(r.provider, r.self, history, record)

	newest, _ = history.Newest()
	if newest.Ours() && !newest.Confirmed() {
		r.installed = installed{
			observed:    true,
			history:     history,
			unconfirmed: foreign.Unconfirmed(r.provider, key, newest),
			owner:       r.installed.owner,
		}

		return Result{}
	}

	r.installed.revision, r.installed.record = newest, record

	if !newest.Ours() && foreign.IsOther(r.provider, record) {
		r.installed.otherChart = describeChart(record)
	}

	return Result{}
}

// checkHealth reads the health of the revision's objects from the watches, which wake the provider
// when it changes.
func (r *run) checkHealth(ctx context.Context) Result {
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

// markFinished notes which Jobs have completed, so that they are not run again.
func (r *run) markFinished() {
	finished := r.installed.health.Finished()

	r.mark(func(newest *state.Revision) { storage.Finish(newest, finished) })
}

// markHealthy notes that the revision was healthy, so that a later one can be rolled back to it.
func (r *run) markHealthy() { r.mark(func(newest *state.Revision) { newest.Healthy = true }) }

// markFailed marks the revision failed.
func (r *run) markFailed(ctx context.Context, verdict *verdict) Result {
	history, revision := r.installed.history, r.installed.revision

	ctrl.LoggerFrom(ctx).Info("The revision failed",
		"release", history.Release.Name, "revision", revision.Number, "reason", verdict.reason)

	marked := revision
	marked.Status, marked.Failure = v1alpha2.RevisionFailed, verdict.failure

	if err := r.announce(ctx)(marked, nil); err != nil {
		return failed(err, applying)
	}

	r.installed.stale = true

	return failed(r.target.Releases.MarkFailed(ctx, history.Release, revision, verdict.failure, verdict.reason), applying)
}
