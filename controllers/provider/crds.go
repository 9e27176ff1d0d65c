package provider

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/crds/trial"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/problem"
)

// Objects that cannot be rewritten are tried again after migrationRetry, and so is what the watch on CRDs
// does not show yet. A change waits for them no longer than migrationPatience: the new manager may be what
// they need.
const (
	migrationRetry    = 5 * time.Second
	migrationPatience = time.Minute
)

// managersTime is how long the manager of a healthy provider has to rewrite objects before the operator does it.
// Cluster API's managers do that as soon as they are leaders; doing it at the same time would only cost requests.
const managersTime = time.Minute

// maxUnmigrated bounds how many CRDs the message of a condition names.
const maxUnmigrated = 5

// unsafe returns the problem of changes of CRDs, for a version of the provider, that would break something, or could
// not be tried.
func unsafe(report *trial.Report, version string) error {
	found := &problem.Error{Condition: v1alpha2.CRDsSafeCondition, Reason: v1alpha2.UnsafeCRDsReason}
	verdict := "are not safe"

	if report.Untried() { // which the restart of a manager ends
		found.Reason, found.Outcome = v1alpha2.UnreadableObjectsReason, problem.Retrying
		verdict = "cannot be tried on existing objects"
	}

	found.Message = fmt.Sprintf(
		"changes of CustomResourceDefinitions %s: %s; to apply them anyway, set the annotation %s: %s",
		verdict, report.Message(), v1alpha2.AllowUnsafeCRDAnnotation, report.Allowance(version))

	return found
}

// crdChange is a change of CRDs to those of a chart.
type crdChange struct {
	plan *crds.Plan
	// differ is set if CRDs are created or updated.
	differ bool
	// checked describes the changes that were checked; empty for none.
	checked string
	// applied is set once the CRDs are those of the chart.
	applied bool
}

// prepareChange prepares the CRDs of the plan. An upgrade may also leave objects whose CRDs it drops.
func (r *run) prepareChange(ctx context.Context) error {
	return r.prepareCRDs(ctx, r.change.plan.Patched, r.upgrades())
}

// prepareCRDs finds out how CRDs change to those of a chart, and makes sure that this breaks no objects, nor that some
// CRDs are dropped if that counts. Nothing is applied.
func (r *run) prepareCRDs(ctx context.Context, c *chart.Chart, drops bool) error {
	planned, err := r.planCRDs(ctx, c)
	if err != nil {
		return err
	}

	r.change.crds.plan, r.change.crds.differ = planned, planned.HasChanges()

	if err := r.target.CRDs.CheckUnmanaged(ctx, planned); err != nil {
		return err
	}

	switch {
	case r.change.crds.differ:
		return r.makeSafe(ctx, planned)
	case drops && len(planned.Dropped()) > 0:
		return r.checkCRDs(ctx, planned)
	}

	return nil
}

// applyCRDs applies the CRDs that were prepared, and corrects those that another program has changed.
func (r *run) applyCRDs(ctx context.Context) error {
	made := &r.change.crds

	if made.differ {
		if err := r.sendCRDs(ctx, made.plan); err != nil {
			return err
		}
	}

	if err := r.correctCRDs(ctx, made.plan); err != nil {
		return err
	}

	made.applied = true

	return nil
}

// makeSafe rewrites objects that the changes of a plan would lose, and checks that these break no others.
func (r *run) makeSafe(ctx context.Context, planned *crds.Plan) error {
	if err := r.migrateBefore(ctx, planned); err != nil {
		return err
	}

	return r.checkCRDs(ctx, planned)
}

// sendSafely applies the changes of a plan once that is safe.
func (r *run) sendSafely(ctx context.Context, planned *crds.Plan) error {
	if err := r.makeSafe(ctx, planned); err != nil {
		return err
	}

	return r.sendCRDs(ctx, planned)
}

// sendCRDs applies the changes of a plan.
func (r *run) sendCRDs(ctx context.Context, planned *crds.Plan) error {
	sent, err := r.target.CRDs.Apply(ctx, planned)
	if err != nil {
		return err
	}

	ctrl.LoggerFrom(ctx).Info("Applied CustomResourceDefinitions", "count", len(sent), "version", planned.Version())

	return nil
}

// planCRDs plans the changes of CRDs, and announces CRDs that are being deleted.
func (r *run) planCRDs(ctx context.Context, c *chart.Chart) (*crds.Plan, error) {
	planned, err := r.Planner.CRDs(ctx, r.target.CRDs, r.provider, c)
	if err != nil {
		return nil, err
	}

	r.provider.GetStatus().OrphanedCRDs = planned.Orphaned

	var deleting []string

	for _, d := range planned.Deleting {
		if r.target.CRDs.ObserveDeletion(d) {
			r.Metrics.CountCRDDeletion(r.provider)

			deleting = append(deleting, d.Name)
		}
	}

	r.emit(r.provider, deletingCRDs(deleting))

	return planned, nil
}

// migrateBefore rewrites objects that are stored in versions about to be removed, a page for each reconcile.
func (r *run) migrateBefore(ctx context.Context, planned *crds.Plan) error {
	progress, err := r.target.CRDs.MigrateBeforeApply(ctx, planned)
	if err != nil {
		if r.migrationFailed(err) <= migrationPatience {
			return waitFor(v1alpha2.CRDMigrationFailedReason, object.Text(err), time.Now().Add(migrationRetry))
		}

		ctrl.LoggerFrom(ctx).Error(err,
			"The CustomResourceDefinitions keep their old versions, and the objects are rewritten once the new manager runs")

		return nil
	}

	if progress == nil {
		return nil
	}

	r.migrating(progress)

	return waitFor(v1alpha2.MigratingCRDsReason, "objects are being rewritten because the new "+
		"CustomResourceDefinitions lack versions that they may be stored in; see the condition "+
		v1alpha2.CRDsMigratedCondition, time.Now())
}

// checkCRDs makes sure that the changes to the CRDs of a version break nothing.
func (r *run) checkCRDs(ctx context.Context, planned *crds.Plan) error {
	allowed := trial.AllowedCRDs(r.provider.GetAnnotations(), planned.Version())

	checked, err := r.target.CRDs.CheckChanges(ctx, planned, allowed)
	if err != nil {
		return err
	}

	if checked == nil {
		return nil
	}

	if checked.Refused() {
		return unsafe(checked, planned.Version())
	}

	r.emit(r.provider, unsafeCRDsAllowed(checked.Allowed()))
	r.change.crds.checked = checked.Message()

	return nil
}

// awaitCRDs waits for the API server to serve the CRDs; the watch on them wakes the provider when it
// does. That takes the API server a while, one CRD after the other. The release does not wait for it:
// usually none of its objects is of such a kind, and its pods take longer to start.
func (r *run) awaitCRDs(ctx context.Context) error {
	return r.served(ctx, r.change.plan.Patched)
}

// served waits for the CRDs of a chart.
func (r *run) served(ctx context.Context, c *chart.Chart) error {
	found, err := r.target.CRDs.Served(ctx, c.CRDs)
	if err != nil {
		return err
	}

	r.namesKept = found.Remark

	switch {
	case found.All:
		return nil
	case found.Obstacle != "":
		return waitFor(v1alpha2.CRDsNotReadyReason, found.Obstacle, time.Time{})
	}

	// The message does not count them: each of dozens would otherwise cause a write of the status.
	return waitFor(v1alpha2.CRDsNotReadyReason,
		"waiting for the API server to serve the provider's CustomResourceDefinitions", time.Time{})
}

// migrateCRDs rewrites the objects that are not stored in the storage version, a page for each reconcile, while
// the provider is ready. Cluster API's managers do that themselves, so they get time for it first. It
// returns the given result, with the time to continue if there is more to do.
func (r *run) migrateCRDs(ctx context.Context, ready Result) Result {
	if r.change.plan.Patched == nil {
		return ready // a rollback, which leaves the CRDs as they are, or a problem with inputs or patches
	}

	planned, err := r.planCRDs(ctx, r.change.plan.Patched)
	if err != nil {
		return resultOf(err)
	}

	unmigrated, tried := planned.PendingMigrations()
	if len(unmigrated) == 0 {
		r.migration = nothingToMigrate(planned.Unmigrated, r.migrated().Type != "")

		return ready
	}

	if remaining := r.managersTurn(unmigrated, tried); remaining > 0 {
		if len(tried) == 0 {
			ready.At = time.Now().Add(remaining)
			return ready
		}

		unmigrated = tried
	}

	progress, err := r.target.CRDs.MigrateAfterRollout(ctx, planned, unmigrated)
	if err != nil {
		ready.At = time.Now().Add(min(max(r.migrationFailed(err), migrationRetry), MaxRetry))
		return ready
	}

	if progress == nil {
		// The watch on CRDs shows that all is done; it may lag, and looking sooner would only show the same again.
		ready.At = time.Now().Add(migrationRetry)
		return ready
	}

	r.migrating(progress)

	ready.At = time.Now()

	return ready
}

// migration is how far objects are rewritten in the storage version. It is zero if nothing is known.
type migration struct {
	done            bool
	reason, message string
}

// nothingToMigrate returns how far the objects are rewritten if those of all CRDs that the installed version manages
// are. Before is set if there was something to migrate before.
func nothingToMigrate(unmanaged []string, before bool) migration {
	switch {
	case len(unmanaged) > 0:
		return migration{reason: v1alpha2.MigrationPendingReason, message: "Objects of " +
			object.List(unmanaged, maxUnmigrated) + " may be stored in old versions, which the installed version of the " +
			"provider does not rewrite; install a version that has these CustomResourceDefinitions"}
	case before:
		return migration{
			done: true, reason: v1alpha2.CRDsMigratedReason, message: "All objects are stored in the storage version",
		}
	default:
		return migration{}
	}
}

// managersTurn returns how much longer the provider's manager may take to rewrite the objects of CRDs: no longer once
// it has tried all of them.
func (r *run) managersTurn(unmigrated, tried []string) time.Duration {
	if len(tried) == len(unmigrated) {
		return 0
	}

	remaining := time.Until(r.readySince(time.Now()).Add(managersTime))
	if remaining > 0 {
		r.migration = migration{reason: v1alpha2.WaitingForManagerReason, message: fmt.Sprintf("Objects of %s may be "+
			"stored in old versions; the provider's manager rewrites them in the storage version, and the operator those "+
			"that are left after a minute, while the provider is ready", object.List(unmigrated, maxUnmigrated))}
	}

	return remaining
}

// readySince returns since when the newest revision has been ready; now if it becomes so. The status tells, so that the
// time of the manager does not begin again with the operator.
func (r *run) readySince(now time.Time) time.Time {
	ready := v1alpha2.FindCondition(r.provider.GetConditions(), v1alpha2.ReadyCondition)
	if ready.Status != metav1.ConditionTrue {
		return now
	}

	since := ready.LastTransitionTime.Time
	if deployed := r.installed.Newest.LastTransitionTime.Time; deployed.After(since) {
		since = deployed
	}

	if since.After(now) {
		return now
	}

	return since
}

// migrated returns the condition that reports how far the objects of CRDs are rewritten; zero if there is none.
func (r *run) migrated() metav1.Condition {
	return v1alpha2.FindCondition(r.provider.GetConditions(), v1alpha2.CRDsMigratedCondition)
}

// migrationFailed records a failed migration and returns for how long it has been failing. The first
// message stays: another one, even about another object, would restart the time.
func (r *run) migrationFailed(err error) time.Duration {
	condition := r.migrated()
	if condition.Reason == v1alpha2.CRDMigrationFailedReason {
		return time.Since(condition.LastTransitionTime.Time)
	}

	r.migration = migration{reason: v1alpha2.CRDMigrationFailedReason, message: object.Text(err)}

	return 0
}

func (r *run) migrating(progress *crds.Progress) {
	r.migration = migration{reason: v1alpha2.MigratingCRDsReason, message: progress.String()}
}

// ownKinds returns the kinds of which the release's objects wait for its manager.
func (r *run) ownKinds(ctx context.Context) (apply.OwnKinds, error) {
	return r.target.CRDs.OwnKinds(ctx, v1alpha2.Label(r.provider))
}
