package provider

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// cared is what care has done with the newest revision, which it does once.
type cared struct {
	revision                                      int
	settled, pruned, restored, finished, advanced bool
	// rolledBack is set once another revision was rolled back to this one.
	rolledBack bool

	// Problems with the record, with drift and with what could not be deleted keep care from nothing else.
	record, drift, left error
}

// care takes care of what is installed until nothing is left to do with the newest revision.
func (r *run) care(ctx context.Context) error {
	did := cared{revision: r.installed.Newest.Number}

	for r.installed.Record != nil {
		if err := r.careOnce(ctx, &did); err != nil {
			return first(did.drift, err, did.left, did.record)
		}

		if !r.installed.stale {
			r.requeueStaged()
			break
		}

		if err := r.observe(ctx); err != nil {
			return first(did.drift, err, did.left, did.record)
		}

		if newest := r.installed.Newest.Number; newest != did.revision {
			did = cared{revision: newest, rolledBack: did.rolledBack, record: did.record, drift: did.drift, left: did.left}
		}
	}

	return first(did.drift, did.left, did.record)
}

// careOnce takes care of the newest revision as it was read. It ends early once that is stale.
func (r *run) careOnce(ctx context.Context, did *cared) error {
	for _, part := range []func(context.Context, *cared) error{r.settle, r.restore, r.complete, r.judge} {
		if err := part(ctx, did); err != nil || r.installed.stale {
			return err
		}
	}

	return nil
}

// settle completes the record of a revision whose end the status knows and the record does not. Otherwise helm shows an
// action that is over as one that is running, and refuses its own.
func (r *run) settle(ctx context.Context, did *cared) error {
	if !r.installed.Newest.RecordOutdated() || did.settled {
		return nil
	}

	did.settled = true
	did.record = r.target.Releases.Settle(ctx, r.installed.History.Release, r.installed.Newest)
	r.installed.stale = did.record == nil

	return nil
}

// restore makes the objects what the newest revision says, and reads their health.
func (r *run) restore(ctx context.Context, did *cared) error {
	newest := r.installed.Newest

	// What a staged revision does not have is deleted after its last wave.
	if r.leaves() && newest.Status == v1alpha2.RevisionDeployed && !r.installed.isStaged() && !did.pruned {
		did.pruned = true
		if did.left = r.prune(ctx); r.installed.stale {
			return nil
		}
	}

	if r.comparesObjects() {
		did.drift = r.correctDrift(ctx)
	}

	// The API server takes ten seconds to find out that it cannot convert an object.
	if r.installed.unconverted != nil {
		return did.drift
	}

	if err := r.checkHealth(ctx); err != nil {
		return err
	}

	// What was lost after the comparison is drift, too.
	if !r.comparesObjects() || !r.lostMeanwhile() || did.restored {
		return nil
	}

	did.restored = true
	did.drift = r.correctDrift(ctx)

	return r.checkHealth(ctx)
}

// complete takes the next step with a revision that is healthy so far.
func (r *run) complete(ctx context.Context, did *cared) error {
	if len(r.installed.health.Finished()) > 0 && !did.finished {
		did.finished = true

		r.markFinished()
	}

	if r.installed.mayAdvance() && !did.advanced {
		did.advanced = true

		if err := r.advance(ctx); err != nil || r.installed.stale {
			return err
		}
	}

	if r.installed.awaitsHealth() && r.installed.healthy() {
		r.markHealthy()
	}

	return nil
}

// judge fails a revision that does not become healthy, and rolls back one that has failed.
func (r *run) judge(ctx context.Context, did *cared) error {
	verdict := r.verdict()

	switch {
	case verdict == nil:
		return r.rollBackFailed(ctx, did)
	case !verdict.until.IsZero():
		r.wakeAt(verdict.until)
		return nil
	case verdict.leave:
		r.leftToChange = true
		return nil
	}

	return r.markFailed(ctx, verdict)
}

// rollBackFailed rolls a failed revision back to the last healthy one that the provider may return to, once in a
// reconcile.
func (r *run) rollBackFailed(ctx context.Context, did *cared) error {
	for {
		target, rolls, leave := r.rollbackTarget(r.target.Releases.Rules())
		r.leftToChange = r.leftToChange || leave

		if !rolls || did.rolledBack {
			return nil
		}

		planned, err := r.checkReturn(ctx, target)
		if err != nil {
			return err
		}

		if r.policy.Refused[target.Number] {
			continue
		}

		err = r.rollBack(ctx, target, planned)
		if !r.policy.Refused[target.Number] {
			did.rolledBack = true
			return err
		}
	}
}

// observeInstalled observes the release, unless nothing is installed for certain: hundreds of providers
// that wait for core then cost no request.
func (r *run) observeInstalled(ctx context.Context) error {
	known := r.provider.GetStatus().Release != nil
	if known || r.target.MayHaveRelease(ctx, plan.ReleaseKey(r.provider)) {
		if err := r.observe(ctx); err != nil {
			return err
		}
	}

	r.findLost(ctx)

	return nil
}

// observe looks at the release. Of one that is not this resource's, or not known to be, nothing is cared for.
func (r *run) observe(ctx context.Context) error {
	defer r.Metrics.TimeStep(r.Type, metrics.StepRelease)()

	look, err := r.target.Releases.Look(ctx, plan.ReleaseKey(r.provider), r.provider, r.self)
	if err != nil {
		return err
	}

	r.policy.Now = time.Now()
	r.installed = installed{observed: true, Look: look}

	if look.Newest.Number == 0 {
		return nil
	}

	switch newest := look.Newest; {
	case r.checkOwner() != nil:
		r.installed.foreign, r.installed.Record = r.checkOwner(), nil
	case look.Record == nil:
	case newest.Ours() && !newest.Confirmed():
		r.installed.unconfirmed = release.Unconfirmed(
			look.History.Release, newest.Number, release.MissingNewest(r.provider, newest))
		r.installed.Record = nil
	case !newest.Ours() && !look.Record.IsOf(r.provider):
		r.installed.otherChart = describeChart(look.Record)
	}

	return nil
}

// checkHealth reads the health of the revision's objects from the watches, which wake the provider
// when it changes.
func (r *run) checkHealth(ctx context.Context) error {
	defer r.Metrics.TimeStep(r.Type, metrics.StepHealth)()

	if err := r.findWaiting(ctx); err != nil {
		return err
	}

	found, err := r.target.Health.Check(ctx, r.owner(), r.installed.Record.Needed(r.installed.Newest))
	if err != nil {
		return err
	}

	found.Objects = withWaiting(found.Objects, r.installed.waiting)
	r.installed.health = &found

	if err := r.findReplicas(ctx); err != nil {
		return err
	}

	return r.findTrust(ctx)
}

// markFinished notes which Jobs have completed, so that they are not run again.
func (r *run) markFinished() {
	finished := r.installed.health.Finished()

	r.mark(func(newest *state.Revision) { storage.Finish(newest, finished) })
}

// markHealthy notes that the revision was healthy, so that a later one can be rolled back to it.
func (r *run) markHealthy() { r.mark(func(newest *state.Revision) { newest.Healthy = true }) }

// markFailed marks the revision failed.
func (r *run) markFailed(ctx context.Context, verdict *verdict) error {
	history, revision := r.installed.History, r.installed.Newest

	ctrl.LoggerFrom(ctx).Info("The revision failed",
		"release", history.Release.Name, "revision", revision.Number, "reason", verdict.reason)

	marked := revision
	marked.Status, marked.Failure = v1alpha2.RevisionFailed, verdict.failure

	if err := r.announce(ctx, marked, nil); err != nil {
		return err
	}

	r.installed.stale = true

	return r.target.Releases.MarkFailed(ctx, history.Release, revision, verdict.failure, verdict.reason)
}
