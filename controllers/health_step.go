package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/release"
)

// reach brings the release to the goal and watches over its health: a revision that is not healthy
// in time has failed, and what follows is decided at once. ready reports whether the rest of the
// provider is, once the release is on its way.
func (r *Reconciler) reach(ctx context.Context, provider v1alpha2.Provider, g goal, ready func() error) error {
	policy := policyOf(provider)
	for {
		run, err := r.release(ctx, provider, g, policy)
		if unknown := new(release.UnknownKindError); err == nil || errors.As(err, &unknown) {
			err = cmp.Or(ready(), err)
		}

		if err != nil {
			return err
		}
		// first, so that nobody is alarmed by what is mended in the same moment
		drifted := r.drift(ctx, provider, run.record)

		report, err := r.check(ctx, run)
		if err != nil {
			return err
		}

		again, err := r.judge(ctx, run, report, policy)
		if err != nil {
			return err
		}

		if !again {
			return cmp.Or(drifted, r.summarize(provider, run, report))
		}

		policy.Now, policy.Requested = time.Now(), report.Healthy()
	}
}

// check reads the health of what the release holds from the watches; these bring the resource back
// when it changes.
func (r *Reconciler) check(ctx context.Context, run *running) (health.Report, error) {
	defer r.Metrics.TimeStep(r.Type, metrics.StepHealth)()

	report, err := r.Health.Check(ctx, names(run.record))
	if err != nil {
		return health.Report{}, &installError{err}
	}

	return report, nil
}

// judge notes in the history whether the newest revision is healthy or has failed, and reports whether
// that asks for another action now.
func (r *Reconciler) judge(
	ctx context.Context,
	run *running,
	report health.Report,
	policy release.Policy,
) (again bool, err error) {
	revision := run.revision

	namespace, name := run.observed.Namespace, run.observed.Name
	switch {
	case !revision.Ours() || revision.Healthy:
		return false, nil
	case revision.Status == release.StatusFailed:
		// It has become healthy after all: another attempt at the same, which changes nothing, says
		// so in the history.
		return run.failed != nil && revision.Failure == release.Unhealthy && report.Healthy(), nil
	case revision.Status != release.StatusDeployed:
		return false, nil
	case report.Healthy():
		return false, noteError(r.Releases.MarkHealthy(ctx, namespace, name, revision))
	case run.reached && policy.Now.After(revision.Created.Add(policy.Timeout)):
		reason := fmt.Sprintf("not healthy within %s: %s", policy.Timeout, report.Message())
		ctrl.LoggerFrom(ctx).Info("the revision has failed", "release", name, "revision", revision.Number, "reason", reason)

		return true, noteError(r.Releases.MarkFailed(ctx, namespace, name, revision, release.Unhealthy, reason))
	}

	return false, nil
}

// noteError is an error of writing into the history.
func noteError(err error) error {
	if err == nil {
		return nil
	}

	return &installError{err}
}

// summarize says how the provider is, in Ready.
func (r *Reconciler) summarize(provider v1alpha2.Provider, run *running, report health.Report) error {
	status := provider.GetStatus()

	version := run.record.AppVersion
	if report.Healthy() {
		status.InstalledVersion = &version
	}

	switch {
	case run.failed != nil:
		if !report.Healthy() && run.revision.Status == release.StatusDeployed {
			run.failed.message += "; what runs is not healthy: " + report.Message()
		}

		return run.failed
	case report.Healthy() && run.held:
		conditions.MarkTrue(
			provider,
			v1alpha2.ReadyCondition,
			v1alpha2.ExternalChangeReason,
			"%s %s is healthy; %s",
			v1alpha2.Label(provider),
			version,
			heldMessage(run),
		)

		return nil
	case report.Healthy() && provider.GetSpec().Paused:
		conditions.MarkTrue(
			provider,
			v1alpha2.ReadyCondition,
			v1alpha2.PausedReason,
			"%s %s is installed and paused: its Deployments have no replicas",
			v1alpha2.Label(provider),
			version,
		)

		return nil
	case report.Healthy():
		conditions.MarkTrue(
			provider,
			v1alpha2.ReadyCondition,
			v1alpha2.HealthyReason,
			"%s %s is installed and healthy",
			v1alpha2.Label(provider),
			version,
		)

		return nil
	case run.held:
		return &progress{reason: v1alpha2.UnhealthyReason, message: report.Message() + "; " + heldMessage(run)}
	case run.revision.Healthy || report.Failed():
		return &progress{reason: v1alpha2.UnhealthyReason, message: report.Message(), until: run.deadline(policyOf(provider))}
	default:
		return &progress{
			reason:  v1alpha2.ProgressingReason,
			message: report.Message(),
			until:   run.deadline(policyOf(provider)),
		}
	}
}

// deadline is when the newest revision must be healthy; zero if it was already, or is not the goal.
func (run *running) deadline(policy release.Policy) time.Time {
	if run.revision.Healthy || !run.reached {
		return time.Time{}
	}

	return run.revision.Created.Add(policy.Timeout + time.Second) // creation times are in whole seconds
}
