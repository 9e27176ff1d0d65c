package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/foreign"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/reconcile/report"
	"github.com/capstan-project/capstan/controllers/release/cluster"
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

	if err := r.target.Releases.Learn(ctx); err != nil {
		return failed(err, applying)
	}

	key := plan.ReleaseKey(r.provider)

	history, err := r.target.Releases.Observe(ctx, key)
	if apierrors.IsForbidden(err) && r.target.Account != "" {
		// The change reports all permissions that the account lacks, and applies nothing.
		r.unobserved = err
		return report.Result{}
	}

	if err != nil {
		return failed(err, applying)
	}

	r.observed = true
	r.policy.Now = r.target.Releases.Clock().Now()
	r.foreign, r.unconfirmed = nil, nil
	foreign.Confirm(r.provider, r.self, history)
	r.installed = installed{history: history}
	r.deviations = nil

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

	if r.foreign = r.checkOwner(record); r.foreign != nil {
		r.installed = installed{}
		return report.Result{}
	}

	if corrupt {
		// The next revision replaces it; until then nothing is known to care for.
		history.Revisions[0].Unreadable = true
		r.installed.revision.Unreadable = true

		return report.Result{}
	}

	if !newest.Confirmed {
		r.unconfirmed = &unconfirmedError{release: key, revision: newest.Number}
		r.installed = installed{history: history}

		return report.Result{}
	}

	r.installed.record = record

	return report.Result{}
}

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

	return report.Result{}
}

// checkNewHealth reads the health of a revision that another program has made since the last one was
// checked.
func (r *run) checkNewHealth(ctx context.Context) report.Result {
	if r.installed.record == nil || r.installed.health != nil {
		return report.Result{}
	}

	return r.checkHealth(ctx)
}

// owner returns the release whose objects are checked.
func (r *run) owner() health.Owner {
	return health.Owner{
		Provider:  v1alpha2.Label(r.provider),
		Namespace: r.provider.GetNamespace(),
		Reader:    r.target.Polled,
	}
}

// markFinished records in the history which Jobs have completed, so that they are not run again.
func (r *run) markFinished(ctx context.Context) report.Result {
	finished := r.installed.health.Finished()
	if len(finished) == 0 {
		return report.Result{}
	}

	key := plan.ReleaseKey(r.provider)

	return r.marked(r.target.Releases.MarkFinished(ctx, key, r.installed.revision, finished))
}

// markHealthy records in the history that the revision was healthy, so that a later one can be rolled
// back to it.
func (r *run) markHealthy(ctx context.Context) report.Result {
	revision := r.installed.revision
	if !r.awaitsHealth() || !r.installed.healthy() {
		return report.Result{}
	}

	history := r.installed.history

	return r.marked(r.target.Releases.MarkHealthy(ctx, history.Release, revision))
}

// awaitsHealth reports whether the revision was applied by Capstan and was never seen healthy.
func (r *run) awaitsHealth() bool {
	revision := r.installed.revision
	return revision.Ours() && revision.Status == state.StatusDeployed && !revision.Healthy
}

// markFailed marks the revision failed if it has not become healthy in time, or cannot. A changed spec
// comes first: it may be the fix. A revision that was rolled back to was healthy before, and there is
// nothing better to roll back to.
func (r *run) markFailed(ctx context.Context) report.Result {
	revision := r.installed.revision
	if !r.awaitsHealth() || r.installed.healthy() || isAutomaticRollback(revision) || r.mayTakeLonger() {
		return report.Result{}
	}

	final := r.installed.health.Verdict() == health.Stop

	// An attempt that was resumed was created long before it was applied.
	deadline := revision.Changed.Add(r.policy.Timeout)
	if !final && !r.policy.Now.After(deadline) {
		// Times of the API server are in whole seconds.
		r.Wake(v1alpha2.Label(r.provider), r.provider.GetNamespace(), deadline.Sub(r.policy.Now)+time.Second)
		return report.Result{}
	}

	if r.policy.SpecChanged {
		r.deferred = true
		return report.Result{}
	}

	history := r.installed.history
	reason := fmt.Sprintf("not healthy within %s: %s", r.policy.Timeout, r.installed.health.Message())
	failure := state.FailureUnhealthy

	if final {
		reason = "it cannot become healthy: " + r.installed.health.Message()
		failure = state.FailureFinal
	}

	ctrl.LoggerFrom(ctx).Info("The revision failed",
		"release", history.Release.Name, "revision", revision.Number, "reason", reason)

	err := r.target.Releases.MarkFailed(ctx, history.Release, revision, failure, reason)
	if err != nil {
		return failed(err, applying)
	}

	return r.observe(ctx)
}

// rollBack rolls a failed revision back to the last healthy one that the provider may return to, if the
// policy says so, or finishes a rollback that was interrupted. A changed spec and a requested retry come
// first.
func (r *run) rollBack(ctx context.Context) report.Result {
	history := r.installed.history
	digest := attemptedDigest(history)
	observed := r.target.Releases.Determine(history, digest)

	decision, err := r.decideRollback(ctx, digest, observed)
	if err != nil {
		return failed(err, applying)
	}

	if decision.Action != state.Rollback {
		r.deferred = r.deferred || r.defersRollback(observed)
		return report.Result{}
	}

	if r.policy.SpecChanged {
		r.deferred = true
		return report.Result{}
	}

	log := ctrl.LoggerFrom(ctx).WithValues("release", history.Release.Name)
	log.Info("Rolling back", "state", observed.State, "found", observed.Message, "to", decision.Revision.Number)

	options := r.rollbackOptions(decision.Revision.Number, r.failureReason(ctx, digest))
	// What an API that is away would serve is missing in any case, and corrected once it is back.
	options.SkipUnknownKinds = true

	result, err := r.returnTo(ctx, options, observed)
	r.Metrics.CountReleaseAction(r.provider, metrics.ActionRollback, err)
	r.target.Health.MarkVerified(result.Applied)

	if errors.As(err, new(*cluster.DryRunError)) {
		r.refuse(decision.Revision, err)
		return r.rollBack(ctx)
	}

	if err != nil && !leavesRevision(result, err) {
		return failed(err, applying)
	}

	if result := r.observe(ctx); result.Ends() || r.installed.record == nil {
		return result
	}

	return inOrder(ctx, r.correctDrift, r.checkHealth, r.advance, r.markHealthy)
}

// failureReason returns why the newest attempt failed. The newest revision may be a rollback that could not
// be completed, which tells another reason.
func (r *run) failureReason(ctx context.Context, digest string) string {
	if r.failure != nil {
		return r.failure.Error()
	}

	history := r.installed.history

	attempts := history.Attempts(digest)
	if len(attempts) == 0 || attempts[0].Number == r.installed.revision.Number {
		return r.installed.record.Description
	}

	record, err := r.target.Releases.Read(ctx, history.Release, attempts[0])
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot read why the release is rolled back", "release", history.Release.Name)
		return r.installed.record.Description
	}

	return record.Description
}

// defersRollback reports whether only a user's request for a retry prevents a rollback.
func (r *run) defersRollback(observed state.Observed) bool {
	if !r.policy.Requested {
		return false
	}

	policy := r.policy
	policy.Requested = false
	history := r.installed.history

	return state.Next(history, attemptedDigest(history), observed, policy).Action == state.Rollback
}

// carePolicy returns the policy for care. A failed revision that has become healthy after all is not
// rolled back.
func (r *run) carePolicy() state.Policy {
	policy := r.policy
	policy.Requested = policy.Requested || r.recovered()

	return policy
}

// attemptedDigest returns the digest of what Capstan last tried to install. A revision that it rolled
// back to automatically carries the digest of an earlier attempt.
func attemptedDigest(history state.History) string {
	for _, revision := range history.Revisions {
		if !revision.Ours() {
			continue
		}

		if !isAutomaticRollback(revision) {
			return revision.Digest
		}
	}

	return ""
}

// isAutomaticRollback reports whether Capstan rolled back to an earlier revision without being asked.
func isAutomaticRollback(revision state.Revision) bool {
	return revision.RollbackTo != 0 && !strings.HasPrefix(revision.Digest, rollbackDigestPrefix)
}
