package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/crds/safety"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/preflight"
)

// Objects that cannot be rewritten are tried again after migrationRetry. If a change waits for
// them, it waits no longer than migrationPatience: the new manager may be what they need.
const (
	migrationRetry    = 5 * time.Second
	migrationPatience = time.Minute
)

// unsafeError says that a change of CRDs would break something.
type unsafeError struct{ report *safety.Report }

func (e *unsafeError) Error() string {
	return fmt.Sprintf(
		"the change of CustomResourceDefinitions is not safe and was not applied: %s. To apply one nevertheless, name it in the annotation %s",
		e.report.Message(),
		v1alpha2.AllowUnsafeCRDAnnotation,
	)
}

// planCRDs finds out what is to be done about the CRDs, and notes what is worth knowing.
func (r *Reconciler) planCRDs(
	ctx context.Context,
	provider v1alpha2.Provider,
	chart *providerChart,
) (*crds.Plan, error) {
	plan, err := r.CRDs.Plan(ctx, r.crdsRequest(provider, chart.Chart))
	if err != nil {
		return nil, &installError{err}
	}

	provider.GetStatus().OrphanedCRDs = plan.Orphaned
	for _, d := range plan.Deleting {
		if r.CRDs.ObserveDeletion(d) {
			r.Metrics.CountCRDDeletion(provider)
			r.Events.Eventf(
				provider,
				nil,
				corev1.EventTypeWarning,
				v1alpha2.CRDDeletingReason,
				"Reconcile",
				"CustomResourceDefinition %s is being deleted, and with it all objects of its kind; it will be made anew once it is gone",
				d.Name,
			)
		}
	}

	return plan, nil
}

// crdsRequest is what the resource wants of a chart's CRDs.
func (r *Reconciler) crdsRequest(provider v1alpha2.Provider, c *chart.Chart) crds.Request {
	request := crds.Request{
		Label: v1alpha2.Label(provider), Version: c.Metadata.AppVersion, Namespace: provider.GetNamespace(),
		Files: c.CRDs, Includes: r.brings(provider),
	}
	if spec := provider.GetSpec().CRDs; spec != nil {
		request.Policy, request.Unmanaged = spec.Policy, spec.Unmanaged
	}

	return request
}

// brings reports whether the provider of a label is installed in the same cluster and brings a CRD.
func (r *Reconciler) brings(provider v1alpha2.Provider) func(ctx context.Context, label, crd string) (bool, error) {
	return func(ctx context.Context, label, crd string) (bool, error) {
		t, name := v1alpha2.ParseLabel(label)
		same, err := listed(ctx, r.Client, t, preflight.NameField, name)

		return slices.ContainsFunc(same, func(p v1alpha2.Provider) bool {
			return v1alpha2.Cluster(p) == v1alpha2.Cluster(provider) && !slices.Contains(p.GetStatus().OrphanedCRDs, crd)
		}), err
	}
}

// applyCRDs applies the CRDs that have changed, once that is safe.
func (r *Reconciler) applyCRDs(ctx context.Context, provider v1alpha2.Provider, chart *providerChart) error {
	defer r.Metrics.TimeStep(r.Type, metrics.StepCRDs)()

	plan, err := r.planCRDs(ctx, provider, chart)
	if err != nil {
		return err
	}

	if err := r.CRDs.CheckUnmanaged(ctx, plan); err != nil {
		return &installError{err}
	}

	if !plan.HasChanges() {
		return nil
	}

	if err := r.migrateBefore(ctx, provider, plan); err != nil {
		return err
	}

	if err := r.checkCRDs(ctx, provider, plan); err != nil {
		return err
	}

	sent, err := r.CRDs.Apply(ctx, plan)
	if err != nil {
		return &installError{err}
	}

	ctrl.LoggerFrom(ctx).
		Info("applied CustomResourceDefinitions", "count", len(sent), "version", chart.Chart.Metadata.AppVersion)

	return nil
}

// migrateBefore rewrites objects that are stored in versions about to go, a slice of them at a
// time.
func (r *Reconciler) migrateBefore(ctx context.Context, provider v1alpha2.Provider, plan *crds.Plan) error {
	moved, err := r.CRDs.MigrateBeforeApply(ctx, plan)

	failed := new(crds.MigrationError)
	switch {
	case errors.As(err, &failed):
		since := migrationFailed(provider, failed)
		if time.Since(since) > migrationPatience {
			ctrl.LoggerFrom(ctx).
				Error(err, "the CustomResourceDefinitions keep their old versions, and the objects are rewritten once the new manager runs")

			return nil
		}

		return &progress{
			reason:  v1alpha2.CRDMigrationFailedReason,
			message: failed.Error(),
			until:   time.Now().Add(migrationRetry),
		}
	case err != nil:
		return &installError{err}
	case moved != nil:
		migrating(provider, moved)

		return &progress{
			reason:  v1alpha2.MigratingCRDsReason,
			until:   time.Now(),
			message: "objects are being rewritten, because the new CustomResourceDefinitions lack versions that they may be stored in; see the condition " + v1alpha2.CRDsMigratedCondition,
		}
	}

	return nil
}

// migrationFailed notes the failure and says since when it has been failing. The first message
// stands, for another one, even about another object, would begin a new time.
func migrationFailed(provider v1alpha2.Provider, failed *crds.MigrationError) time.Time {
	if c := conditions.Get(
		provider,
		v1alpha2.CRDsMigratedCondition,
	); c != nil &&
		c.Reason == v1alpha2.CRDMigrationFailedReason {
		return c.LastTransitionTime.Time
	}

	conditions.MarkFalse(provider, v1alpha2.CRDsMigratedCondition, v1alpha2.CRDMigrationFailedReason, "%s", failed)

	return conditions.Get(provider, v1alpha2.CRDsMigratedCondition).LastTransitionTime.Time
}

func migrating(provider v1alpha2.Provider, moved *crds.Progress) {
	conditions.MarkFalse(provider, v1alpha2.CRDsMigratedCondition, v1alpha2.MigratingCRDsReason, "%s", moved)
}

// checkCRDs makes sure that the changes break nothing.
func (r *Reconciler) checkCRDs(ctx context.Context, provider v1alpha2.Provider, plan *crds.Plan) error {
	report, err := r.CRDs.CheckChanges(ctx, plan, safety.AllowedCRDs(provider.GetAnnotations()))
	if err != nil {
		return &installError{err}
	}

	if report == nil {
		return nil
	}

	if report.HasErrors() {
		return &unsafeError{report}
	}

	for _, finding := range report.Findings {
		if finding.Allowed {
			r.Events.Eventf(provider, nil, corev1.EventTypeWarning, v1alpha2.UnsafeCRDsAllowedReason, "Reconcile", "%s", finding)
		}
	}

	conditions.MarkTrue(provider, v1alpha2.CRDsSafeCondition, v1alpha2.CRDsCheckedReason, "%s", report.Message())

	return nil
}

// crdsServed makes sure that the API server serves the CRDs; the watch on them brings the resource
// back once it does. That takes the API server a while, one CRD after the other, and the release is
// not held up by it: no object of a release is of such a kind, as a rule, and its pods take longer
// to start.
func (r *Reconciler) crdsServed(ctx context.Context, chart *providerChart) error {
	pending, err := r.CRDs.NotServed(ctx, chart.Chart.CRDs)
	if err != nil {
		return &installError{err}
	}

	if len(pending) > 0 {
		// The message is the same until all are served: each of dozens would otherwise be a write
		// of its own.
		return &progress{
			reason:  v1alpha2.CRDsNotReadyReason,
			message: "waiting for the API server to serve the provider's CustomResourceDefinitions",
		}
	}

	return nil
}

// migrateCRDs rewrites the objects that are not stored in the storage version, a slice of them at a
// time, while the provider is healthy. Managers of Cluster API do that themselves, so they get the
// time to.
func (r *Reconciler) migrateCRDs(ctx context.Context, provider v1alpha2.Provider, chart *providerChart) error {
	plan, err := r.planCRDs(ctx, provider, chart)
	if err != nil {
		return err
	}

	all, tried := plan.PendingMigrations()
	if len(all) == 0 {
		if conditions.Has(provider, v1alpha2.CRDsMigratedCondition) {
			conditions.MarkTrue(
				provider,
				v1alpha2.CRDsMigratedCondition,
				v1alpha2.CRDsMigratedReason,
				"All objects are stored in the storage version",
			)
		}

		return r.CRDs.CleanUpMigrations(ctx, plan)
	}

	if rest := r.managersTurn(provider); rest > 0 && len(tried) < len(all) {
		if all = tried; len(all) == 0 {
			return &chores{time.Now().Add(rest)}
		}
	}

	moved, err := r.CRDs.MigrateAfterRollout(ctx, plan, all)

	failed := new(crds.MigrationError)
	switch {
	case errors.As(err, &failed):
		since := migrationFailed(provider, failed)
		return &chores{time.Now().Add(min(max(time.Since(since), migrationRetry), longestRetry))}
	case err != nil:
		return err
	case moved != nil:
		migrating(provider, moved)
	}

	return &chores{time.Now()}
}

// managersTurn is how much longer the provider's manager may take to rewrite the objects.
func (r *Reconciler) managersTurn(provider v1alpha2.Provider) time.Duration {
	c := conditions.Get(provider, v1alpha2.CRDsMigratedCondition)
	if c == nil || c.Status == "True" {
		conditions.MarkFalse(provider, v1alpha2.CRDsMigratedCondition, v1alpha2.WaitingForManagerReason,
			"The storage version has changed; the provider's manager has %s to rewrite the objects itself", r.MigrationDelay)
		c = conditions.Get(provider, v1alpha2.CRDsMigratedCondition)
	}

	if c.Reason != v1alpha2.WaitingForManagerReason {
		return 0
	}

	return time.Until(c.LastTransitionTime.Add(r.MigrationDelay))
}
