package reconcile

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// summarize combines both parts into the result of the run: what is installed, and why it is not yet
// what was asked for.
func (r *run) summarize(care, change Result) Result {
	if change.Ends() {
		return r.stopped(care, change)
	}

	inSync := r.state.State == state.InSync || r.decision.Action == state.Hold

	switch {
	case inSync && care.Ends():
		return care
	case inSync:
		return r.healthResult()
	case r.state.State == state.Locked:
		return waiting(v1alpha2.ProgressingReason, r.state.Message, r.state.Until)
	case r.unconfirmed != nil:
		return failed(r.unconfirmed, applying)
	case r.installed.record == nil:
		history := r.installed.history
		err := fmt.Errorf("release %s was deleted just after it was applied; it will be installed again", history.Release)

		return firstOf(care, failed(err, applying))
	}

	result := r.attemptFailed()
	if !care.Ends() {
		return result
	}

	// The rollback, for example, could not be completed.
	result.Message += "; " + care.Message

	if care.Outcome == Retrying {
		result.Outcome = Retrying
		result.Err = care.Err
	}

	return result
}

// stopped is the result of a change that ended early.
func (r *run) stopped(care, change Result) Result {
	if r.unconfirmed != nil && change.Message != r.unconfirmed.Error() {
		change.Message += "; " + r.unconfirmed.Error()
		return change
	}

	if r.installed.record == nil || r.state.State == state.InSync || r.isUninstalledByOthers() {
		return change
	}

	change.Message += "; " + r.stillInstalled()

	if care.Ends() {
		change.Message += "; " + care.Message
	}

	return change
}

// stillInstalled describes what is installed while the change is stopped.
func (r *run) stillInstalled() string {
	revision := r.installed.revision
	text := fmt.Sprintf("%s stays installed, as revision %d", r.installed.record.AppVersion, revision.Number)

	switch {
	case revision.Status != state.StatusDeployed:
		text = fmt.Sprintf("%s, which is %s: %s", text, revision.Status, r.installed.record.Description)
		if r.refusal != "" {
			text += "; " + r.refusal
		}

		return text
	case r.installed.health == nil:
		return text
	case r.installed.healthy():
		return text + ", and is healthy"
	}

	return text + ", and is not healthy: " + r.installed.health.Message()
}

// healthResult is the result when the release is what it should be: its health decides.
func (r *run) healthResult() Result {
	report, version := r.installed.health, r.installed.record.AppVersion
	final := report.Verdict() == health.Stop
	held := r.decision.Action == state.Hold
	ready := func(reason, format string, args ...any) Result {
		name := v1alpha2.Label(r.provider) + " " + version
		return Result{Outcome: Ready, Reason: reason, Message: name + fmt.Sprintf(format, args...)}
	}

	switch {
	case report.Healthy() && held:
		return ready(v1alpha2.ExternalChangeReason, " is healthy; %s", r.heldMessage())
	case report.Healthy() && r.paused():
		return ready(v1alpha2.PausedReason, " is installed and paused: its Deployments have no replicas")
	case report.Healthy():
		return ready(v1alpha2.HealthyReason, " is installed and healthy")
	case held:
		return waiting(v1alpha2.UnhealthyReason, report.Message()+"; "+r.heldMessage(), noDeadline)
	case final:
		return Result{Outcome: Stalled, Reason: v1alpha2.UnhealthyReason, Message: report.Message()}
	case r.installed.revision.Healthy || report.Failed():
		result := waiting(v1alpha2.UnhealthyReason, report.Message(), noDeadline)
		result.Limited = true

		return result
	default:
		return waiting(v1alpha2.ProgressingReason, report.Message(), noDeadline)
	}
}

// limit sets since when the resource has been waiting for the same reason. A wait that takes longer than
// an installation may is overdue: it continues, but a user must know.
func (r *run) limit(result Result) Result {
	if !result.Limited {
		return result
	}

	now := time.Now()
	result.Since = waitingSince(r.provider.GetConditions(), result.Reason, now)
	end := result.Since.Add(r.policy.Timeout)

	switch {
	case now.After(end):
		result.Overdue = true
		result.Message += fmt.Sprintf("; this has taken longer than spec.release.timeout, which is %s", r.policy.Timeout)
	case result.Outcome == Waiting && (result.At.IsZero() || result.At.After(end)):
		result.At = end.Add(time.Second) // conditions have times in whole seconds
	}

	return result
}

// attemptFailed is the result when the goal was attempted and failed: why, what runs now, and what
// happens next.
func (r *run) attemptFailed() Result {
	installed := r.installed
	revision, record := installed.revision, installed.record

	cause := strings.TrimPrefix(record.Description, fmt.Sprintf("Rollback to %d: ", revision.RollbackTo))
	if r.failure != nil {
		cause = r.failure.Error()
	}

	result := Result{
		Outcome: Waiting,
		Reason:  v1alpha2.InstallFailedReason,
		Message: fmt.Sprintf("%s failed: %s", r.goal.version, cause),
		At:      r.decision.Until,
	}

	attempts := installed.history.Attempts(r.desired)
	if len(attempts) > 0 {
		switch attempts[0].Failure {
		case state.FailureUnhealthy:
			result.Reason = v1alpha2.TimedOutWaitingForDeploymentReason
		case state.FailureFinal:
			result.Reason = v1alpha2.UnhealthyReason
		}
	}

	deployed := revision.Status == state.StatusDeployed

	switch {
	case !deployed:
		result.Condition = v1alpha2.ProviderInstalledCondition
		if r.refusal != "" {
			result.Message += "; " + r.refusal
		}
	case revision.RollbackTo != 0:
		result.Message += fmt.Sprintf("; %s runs again, as revision %d", record.AppVersion, revision.Number)
	}

	if r.decision.Action == state.Stop {
		attempts := "1 attempt"
		if r.decision.Attempts != 1 {
			attempts = fmt.Sprintf("%d attempts", r.decision.Attempts)
		}

		result.Message += fmt.Sprintf("; given up after %s: change the resource, or its annotation %s, to try again",
			attempts, v1alpha2.ReconcileRequestAnnotation)
	}

	switch {
	case r.decision.Action == state.Apply:
		result.At = time.Now()
	case r.decision.Until.IsZero():
		result.Outcome = Stalled
	}

	r.upgradeFailed = result.Message

	if deployed && installed.health != nil && !installed.healthy() {
		result.Message += "; what runs is not healthy: " + installed.health.Message()
	}

	return result
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

// uninstalledByOthers is the result when another program uninstalled the release, which is respected.
func (r *run) uninstalledByOthers() Result {
	history := r.installed.history

	return Result{
		Outcome:   Stalled,
		Condition: v1alpha2.ProviderInstalledCondition,
		Reason:    v1alpha2.ExternalChangeReason,
		Message: fmt.Sprintf("release %s was uninstalled by another program, and stays so until this resource changes; "+
			"to have it installed again, change the annotation %s or set spec.release.onExternalChange to Revert; "+
			"to accept it, delete this resource", history.Release, v1alpha2.ReconcileRequestAnnotation),
	}
}

// heldMessage explains a revision of another program, and how to accept or undo it.
func (r *run) heldMessage() string {
	accept := "to accept it, set spec.version to " + r.installed.record.AppVersion
	if r.provider.GetStatus().DesiredVersion == r.installed.record.AppVersion {
		accept = "to keep it, leave this resource as it is"
	}

	return fmt.Sprintf("revision %d was made by another program (%s), and stays until this resource changes; to undo it, "+
		"change the annotation %s or set spec.release.onExternalChange to Revert; %s",
		r.installed.revision.Number, r.installed.record.Description, v1alpha2.ReconcileRequestAnnotation, accept)
}

// noDeadline is the time of results that an event brings back.
var noDeadline time.Time

// until returns the time until at, at least a millisecond; zero for the zero time.
func until(at time.Time) time.Duration {
	if at.IsZero() {
		return 0
	}

	return max(time.Until(at), time.Millisecond)
}

// retryAfter returns the time until a stalled resource is looked at again: until the known time, or as
// long as the condition has existed, within bounds.
func retryAfter(result Result, ready *metav1.Condition) time.Duration {
	if !result.At.IsZero() {
		return max(time.Until(result.At), time.Second)
	}

	return min(max(time.Since(ready.LastTransitionTime.Time), minRetry), maxRetry)
}

// reportUpgrades shows in the status which upgrades the source offers.
func (r *run) reportUpgrades(ctx context.Context) {
	known := r.Upgrades.Look(r.provider, time.Time{})

	if status := r.provider.GetStatus(); known.Answered() {
		status.AvailableUpgrades = known.Available(status.InstalledVersion, func(contract string) bool {
			return r.Preflight.Contract(ctx, r.provider, contract) == nil
		})
	}

	if !known.Checked {
		return
	}

	if known.Move != nil && conditions.GetMessage(r.provider, v1alpha2.SourceChangedCondition) != known.Move.String() {
		r.warn(r.provider, v1alpha2.TagMovedReason, "Fetch", known.Move.String())
	}

	r.moved, r.movedChecked = known.Move, true
}
