package provider

import (
	"context"
	"errors"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/store"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/crds/trial"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/problem"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// refusesRollback reports whether an error of checkTarget means that the provider must not return to the revision, and
// not that this could not be found out.
func refusesRollback(err error) bool {
	found := problem.Of(err)
	return found != nil && found.Outcome != problem.Retrying || errors.As(err, new(*storage.CorruptError))
}

// checkTarget checks whether the managers of an earlier revision may run beside the other providers, and can work with
// today's CRDs and conversion webhooks: contracts may have changed since the revision was installed, and CRDs are never
// rolled back. It applies nothing, and returns the plan for the revision's CRDs; nil if its chart is no longer stored.
func (r *run) checkTarget(ctx context.Context, revision state.Revision) (*crds.Plan, error) {
	record, err := r.target.Releases.Read(ctx, plan.ReleaseKey(r.provider), revision)
	if err != nil {
		return nil, err
	}

	if !revision.Confirms(record.Digest) {
		return nil, release.Unconfirmed(plan.ReleaseKey(r.provider), revision.Number, 0)
	}

	if err := r.Preflight.Contracts(ctx, r.provider, record.Contract); err != nil {
		return nil, err
	}

	installed, err := r.Planner.Charts.Installed(ctx, r.provider, revision.ChartDigest)
	if errors.Is(err, store.ErrNotFound) {
		return nil, r.checkVersion(ctx, record.AppVersion)
	}

	if err != nil {
		return nil, err
	}

	if err := r.checkServed(ctx, record.Contract, installed.CRDs); err != nil {
		return nil, err
	}

	planned, err := r.Planner.CRDs(ctx, r.target.CRDs, r.provider, installed)
	if err != nil {
		return nil, err
	}

	return planned, r.target.CRDs.CheckUnmanaged(ctx, planned)
}

// checkVersion checks the version of a revision whose chart is no longer stored: its managers know the CRDs unless one
// was applied for a newer version.
func (r *run) checkVersion(ctx context.Context, version string) error {
	newer, err := r.target.CRDs.NewerVersion(ctx, v1alpha2.Label(r.provider), version)
	if err != nil {
		return err
	}

	if newer != "" {
		return unchecked(version, newer)
	}

	return nil
}

// unchecked returns the problem of a version of which it is not known whether its managers can work with the CRDs,
// which were applied for another version.
func unchecked(version, applied string) error {
	return problem.Refuse(v1alpha2.UnsupportedProviderDowngradeReason,
		"it is not known whether the managers of %s, whose chart is no longer stored, can work with the "+
			"CustomResourceDefinitions of %s, which are never downgraded; set spec.version to %[1]s instead",
		version, applied)
}

// rollbackGoal returns the goal that spec.release.rollbackTo describes.
func (r *run) rollbackGoal(revision int) goal {
	target := state.Revision{ReleaseRevision: v1alpha2.ReleaseRevision{Number: revision}}
	to := r.rollbackOptions(target, "spec.release.rollbackTo")
	to.Request = r.asked()

	to.Digest = rollbackDigest(revision, to.Paused)

	apply := func(ctx context.Context, observed state.Observed) (release.Result, error) {
		if target, exists := r.installed.History.Find(revision); exists {
			to.Target = target
		}

		return r.returnTo(ctx, to, observed)
	}

	return goal{
		version: fmt.Sprintf("revision %d", revision),
		digest:  to.Digest,
		action:  metrics.ActionRollback,
		apply:   apply,
	}
}

// checkRevision makes sure that the provider may return to the revision that spec.release.rollbackTo names. If that
// does not exist or cannot be read, the rollback itself reports it.
func (r *run) checkRevision(ctx context.Context) error {
	to, exists := r.installed.History.Find(r.rollbackTo())
	if !exists {
		return nil
	}

	planned, err := r.checkTarget(ctx, to)
	if errors.As(err, new(*storage.CorruptError)) {
		return nil
	}

	if err != nil || planned == nil {
		return err
	}

	r.change.crds.plan = planned

	return r.checkDropped(ctx, planned)
}

// checkDropped makes sure that there are no objects of the CRDs that a revision does not include.
func (r *run) checkDropped(ctx context.Context, planned *crds.Plan) error {
	allowed := trial.AllowedCRDs(r.provider.GetAnnotations(), planned.Version())

	checked, err := r.target.CRDs.CheckDropped(ctx, planned, allowed)
	if err != nil {
		return err
	}

	if checked.Refused() {
		return unsafe(checked, planned.Version())
	}

	r.emit(r.provider, unsafeCRDsAllowed(checked.Allowed()))

	return nil
}

// checkReturn rules a revision out as the target of a rollback after a failure if the provider must not return to it,
// and returns the plan for its CRDs. Objects of those that it does not include prevent no rollback.
func (r *run) checkReturn(ctx context.Context, target state.Revision) (*crds.Plan, error) {
	planned, err := r.checkTarget(ctx, target)
	if err != nil && refusesRollback(err) {
		r.refuse(target, err)
		return nil, nil
	}

	return planned, err
}

// refuse rules out a target of a rollback.
func (r *run) refuse(target state.Revision, reason error) {
	if r.policy.Refused == nil {
		r.policy.Refused = map[int]bool{}
		r.done.refusal = fmt.Sprintf("not rolled back to %s (revision %d): %s", target.Version, target.Number, reason)
	}

	r.policy.Refused[target.Number] = true
}

// rollBack rolls a failed revision back. The plan for the CRDs of the target may be nil.
func (r *run) rollBack(ctx context.Context, target state.Revision, planned *crds.Plan) error {
	history := r.installed.History
	digest := attemptedDigest(history)
	observed := r.target.Releases.Determine(history, digest)

	log := ctrl.LoggerFrom(ctx).WithValues("release", history.Release.Name)
	log.Info("Rolling back", "state", observed.State, "found", observed.Message, "to", target.Number)

	options := r.rollbackOptions(target, r.failureReason(ctx, digest))
	// What an API that is away would serve is missing in any case, and corrected once it is back.
	options.SkipUnknownKinds = true

	result, err := r.returnTo(ctx, options, observed)
	r.noteResult(result)
	r.target.Health.MarkVerified(result.Applied())
	r.emit(r.provider, rewritten(result.Results))

	r.Metrics.CountReleaseAction(r.provider, metrics.ActionRollback, err)

	if errors.As(err, new(*apply.DryRunError)) {
		r.refuse(target, err)
		return nil
	}

	if err != nil && !leavesRevision(result, err) {
		_ = r.observe(ctx) // a record may have been written, which the status must have

		return err
	}

	if attempts := history.Attempts(digest); err == nil && len(attempts) > 0 {
		r.emit(r.provider, rolledBack(target.Version, result.Revision, attempts[0].Version))
		r.tellLeft(ctx, planned)
	}

	r.installed.stale = true

	return nil
}

// tellLeft tells which CRDs, and objects of theirs, a rollback has left without the provider.
func (r *run) tellLeft(ctx context.Context, planned *crds.Plan) {
	if planned == nil {
		return
	}

	left := object.List(planned.Dropped(), maxNamed)
	if checked, err := r.target.CRDs.CheckDropped(ctx, planned, nil); err == nil && !checked.Untried() {
		left = checked.Left()
	}

	r.emit(r.provider, orphanedCRDs(planned.Version(), planned.Dropped(), left))
}

// failureReason returns why the newest attempt failed. The newest revision may be a rollback that could not
// be completed, which tells another reason.
func (r *run) failureReason(ctx context.Context, digest string) string {
	if r.done.failure != nil {
		return object.Text(r.done.failure)
	}

	history := r.installed.History

	attempts := history.Attempts(digest)
	if len(attempts) == 0 || attempts[0].Number == r.installed.Newest.Number {
		return r.installed.Record.Description
	}

	record, err := r.target.Releases.Read(ctx, history.Release, attempts[0])
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot read why the release is rolled back", "release", history.Release.Name)
		return r.installed.Record.Description
	}

	return record.Description
}

// rollbackOptions returns the options of a rollback. Whether the provider is paused is what the spec says
// now, and not what it said when the revision was installed.
func (r *run) rollbackOptions(target state.Revision, reason string) release.RollbackOptions {
	return release.RollbackOptions{
		Target:       target,
		Reason:       reason,
		HistoryLimit: plan.HistoryLimit(r.provider.GetSpec()),
		Paused:       r.provider.GetSpec().Paused,
	}
}

// returnTo rolls the release back.
func (r *run) returnTo(
	ctx context.Context, options release.RollbackOptions, observed state.Observed,
) (release.Result, error) {
	if err := r.findMade(ctx); err != nil {
		return release.Result{}, err
	}

	memory, err := r.knownWithKinds(ctx)
	if err != nil {
		return release.Result{}, err
	}

	return r.target.Releases.Rollback(ctx, plan.ReleaseKey(r.provider), memory, options, observed)
}
