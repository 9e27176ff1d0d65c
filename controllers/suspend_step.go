package controllers

import (
	"context"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// report tells how a suspended provider is, and changes nothing.
func (r *Reconciler) report(ctx context.Context, provider v1alpha2.Provider) error {
	const held = "nothing is changed while spec.suspend is true"
	if !provider.GetDeletionTimestamp().IsZero() {
		return &progress{reason: v1alpha2.SuspendedReason, message: "the deletion waits: " + held}
	}

	observed, err := r.Releases.Observe(ctx, nameOfRelease(provider))
	if err != nil {
		return &installError{err}
	}

	run, err := r.record(ctx, provider, observed)
	if err != nil {
		return err
	}

	if run.record == nil {
		conditions.MarkFalse(provider, v1alpha2.ReadyCondition, v1alpha2.SuspendedReason, "Not installed, and %s", held)
		return nil
	}

	report, err := r.check(ctx, run)
	if err != nil {
		return err
	}

	if err := r.drift(ctx, provider, run.record); err != nil {
		return err
	}

	label, version := v1alpha2.Label(provider), run.record.AppVersion
	if report.Healthy() {
		conditions.MarkTrue(
			provider,
			v1alpha2.ReadyCondition,
			v1alpha2.SuspendedReason,
			"%s %s is healthy; %s",
			label,
			version,
			held,
		)
	} else {
		conditions.MarkFalse(
			provider,
			v1alpha2.ReadyCondition,
			v1alpha2.SuspendedReason,
			"%s %s is not healthy: %s; %s",
			label,
			version,
			report.Message(),
			held,
		)
	}

	return nil
}
