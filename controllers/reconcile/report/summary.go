package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/ranges"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// Summary is how a reconcile ended.
type Summary struct {
	Result
	// UpgradeFailed is why the last upgrade failed; empty if it did not.
	UpgradeFailed string
}

// Summarize combines how care and change ended: what is installed, and why it is not yet what was asked for.
func Summarize(in Input, care, change Result) Summary {
	ended := summarize(in, care, change)
	ended.Message += undeletedMessage(in.Installed.Undeleted)

	if ended.Outcome == Ready {
		return ended
	}

	// A manager that gets a flag which it does not have stops at its start, and only its log says why.
	for _, f := range in.Change.Flags {
		if strings.Contains(ended.Message, "/"+f.Deployment+":") {
			ended.Message += "; " + f.Warning
		}
	}

	return ended
}

func summarize(in Input, care, change Result) Summary {
	if change.Ends() {
		return Summary{Result: stopped(in, care, change)}
	}

	installed := in.Installed
	inSync := in.Change.State.State == state.InSync || in.Change.held()

	switch {
	case inSync && installed.Record.OtherChart != "":
		return Summary{Result: otherChart(installed)}
	case inSync && care.Ends():
		return Summary{Result: care}
	case inSync:
		return Summary{Result: healthResult(in)}
	case in.Change.State.State == state.Locked:
		return Summary{Result: Wait(v1alpha2.ProgressingReason, in.Change.State.Message, in.Change.State.Until)}
	case installed.Unconfirmed != "":
		return Summary{Result: Result{
			Outcome: Stalled, Condition: v1alpha2.ProviderInstalledCondition,
			Reason: v1alpha2.InstallFailedReason, Message: installed.Unconfirmed,
		}}
	case !installed.Record.Readable:
		return Summary{Result: First(care, Result{
			Outcome: Retrying, Condition: v1alpha2.ProviderInstalledCondition, Reason: v1alpha2.InstallFailedReason,
			Message: fmt.Sprintf("release %s was deleted just after it was applied; it will be installed again",
				installed.History.Release),
			Limited: true,
		})}
	}

	return attemptFailed(in, care)
}

// stopped is the result of a change that ended early.
func stopped(in Input, care, change Result) Result {
	installed := in.Installed
	change.Cause = change.Message

	if installed.Unconfirmed != "" && change.Message != installed.Unconfirmed {
		change.Message += "; " + installed.Unconfirmed
		return change
	}

	if !installed.Record.Readable || in.Change.State.State == state.InSync || in.isUninstalledByOthers() {
		return change
	}

	if installed.Record.OtherChart != "" {
		change.Message += "; " + installed.problem()
		return change
	}

	change.Message += "; " + stillInstalled(in, care)

	if care.Ends() {
		change.Message += "; " + care.Message
	}

	return change
}

// stillInstalled describes what is installed while the change is stopped. What care has a problem with is not called
// healthy, whatever its objects are.
func stillInstalled(in Input, care Result) string {
	installed := in.Installed
	revision := installed.Revision
	text := fmt.Sprintf("%s stays installed, as revision %d", installed.Record.AppVersion, revision.Number)

	switch {
	case revision.Status.Pending():
		return fmt.Sprintf("revision %d, with %s, is %s: %s",
			revision.Number, installed.Record.AppVersion, revision.Status, installed.Record.Description)
	case revision.Status != state.StatusDeployed:
		text = fmt.Sprintf("%s, which is %s: %s", text, revision.Status, installed.Record.Description)
		if in.Change.Refusal != "" {
			text += "; " + in.Change.Refusal
		}

		return text
	case !installed.Health.Checked, installed.runs() && care.Ends():
		return text
	case installed.runs():
		return text + ", and is healthy"
	}

	return text + ", and is not healthy: " + installed.problem()
}

// healthResult is the result when the release is what it should be: its health decides.
func healthResult(in Input) Result {
	installed, held := in.Installed, in.Change.held()
	health, problem := installed.Health, installed.problem()
	ready := func(reason, format string, args ...any) Result {
		message := in.Provider.Label + " " + installed.Record.AppVersion + fmt.Sprintf(format, args...)
		return Result{Outcome: Ready, Reason: reason, Message: message + keptMessage(health.Kept)}
	}

	switch {
	case installed.runs() && held:
		return ready(v1alpha2.ExternalChangeReason, " is healthy; %s", heldMessage(in))
	case installed.runs() && installed.paused():
		return ready(v1alpha2.PausedReason, " is installed and paused: its Deployments have no replicas")
	case installed.runs():
		return ready(v1alpha2.HealthyReason, " is installed and healthy")
	case held:
		return Wait(v1alpha2.UnhealthyReason, problem+"; "+heldMessage(in), time.Time{})
	case health.Final:
		return Result{Outcome: Stalled, Reason: v1alpha2.UnhealthyReason, Message: problem}
	case installed.Revision.Healthy || health.Failed:
		result := Wait(v1alpha2.UnhealthyReason, problem, time.Time{})
		result.Limited = true

		return result
	default:
		return Wait(v1alpha2.ProgressingReason, problem, time.Time{})
	}
}

// keptMessage explains containers that a revision did not change, and how to change them.
func keptMessage(kept string) string {
	if kept == "" {
		return ""
	}

	return fmt.Sprintf("; %s, because %s is %s: change it yourself, or delete the object to have it created again",
		kept, v1alpha2.UpdatePolicyAnnotation, v1alpha2.UpdateOnce)
}

// undeletedMessage names objects of earlier revisions that finalizers hold.
func undeletedMessage(undeleted string) string {
	if undeleted == "" {
		return ""
	}

	return "; no longer part of the release: " + undeleted + "; the program that added a finalizer has to remove it"
}

// attemptFailed is the result when the goal was attempted and failed: why, what runs now, and what
// happens next.
func attemptFailed(in Input, care Result) Summary {
	installed, decision := in.Installed, in.Change.Decision
	result := Result{
		Outcome: Waiting,
		Reason:  failureReason(in),
		Message: describeFailure(in),
		At:      decision.Until,
	}

	deployed := installed.deployed()
	if !deployed {
		result.Condition = v1alpha2.ProviderInstalledCondition
	}

	switch {
	case decision.Action == state.Apply:
		result.At = in.Now
	case decision.Until.IsZero():
		result.Outcome = Stalled
	}

	upgradeFailed := result.Message

	if result.Outcome == Waiting {
		result.Message += fmt.Sprintf("; %s will be tried again", in.Change.Goal)
	}

	if deployed && installed.Health.Checked && !installed.runs() {
		result.Message += "; what runs is not healthy: " + installed.problem()
	}

	// The rollback, for example, could not be completed.
	if care.Ends() {
		result.Message += "; " + care.Message
	}

	if care.Outcome == Retrying {
		result.Outcome = Retrying
	}

	return Summary{Result: result, UpgradeFailed: upgradeFailed}
}

// failureReason returns the reason of the newest failed attempt.
func failureReason(in Input) string {
	attempts := in.Installed.History.Attempts(in.Change.Digest)
	if len(attempts) == 0 {
		return v1alpha2.InstallFailedReason
	}

	switch attempts[0].Failure {
	case state.FailureUnhealthy:
		return v1alpha2.TimedOutWaitingForDeploymentReason
	case state.FailureFinal:
		return v1alpha2.UnhealthyReason
	default:
		return v1alpha2.InstallFailedReason
	}
}

// describeFailure describes why the goal was not reached, and what follows from that.
func describeFailure(in Input) string {
	revision, record, decision := in.Installed.Revision, in.Installed.Record, in.Change.Decision

	cause := strings.TrimPrefix(record.Description, fmt.Sprintf("Rollback to %d: ", revision.RollbackTo))
	if in.Change.Failure != "" {
		cause = in.Change.Failure
	}

	message := fmt.Sprintf("%s failed: %s", in.Change.Goal, cause)

	switch {
	case revision.Status != state.StatusDeployed:
		if in.Change.Refusal != "" {
			message += "; " + in.Change.Refusal
		}
	case revision.RollbackTo != 0 && revision.Staged:
		message += fmt.Sprintf("; it is being rolled back to %s, as revision %d", record.AppVersion, revision.Number)
	case revision.RollbackTo != 0:
		message += fmt.Sprintf("; %s runs again, as revision %d", record.AppVersion, revision.Number)
	}

	if decision.Action == state.Stop {
		message += fmt.Sprintf("; given up after %s: change the resource, or its annotation %s, to try again",
			object.Count(decision.Attempts, "attempt"), v1alpha2.ReconcileRequestAnnotation)
	}

	return message
}

// heldMessage explains a revision of another program, and how to accept or undo it.
func heldMessage(in Input) string {
	installed := in.Installed

	accept := "to accept it, set spec.version to " + installed.Record.AppVersion
	if in.Provider.Status.DesiredVersion == installed.Record.AppVersion {
		accept = "to keep it, leave this resource as it is"
	}

	return fmt.Sprintf("revision %d was made by another program (%s), and stays until this resource changes; to undo it, "+
		"change the annotation %s or set spec.release.onExternalChange to Revert; %s",
		installed.Revision.Number, installed.Record.Description, v1alpha2.ReconcileRequestAnnotation, accept)
}

// otherChart is the result when another program has replaced the provider by another chart.
func otherChart(installed Installed) Result {
	return Result{
		Outcome:   Stalled,
		Condition: v1alpha2.ProviderInstalledCondition,
		Reason:    v1alpha2.ExternalChangeReason,
		Message: fmt.Sprintf("%s; to have the provider installed again, change the annotation %s or set "+
			"spec.release.onExternalChange to Revert", installed.problem(), v1alpha2.ReconcileRequestAnnotation),
	}
}

// UninstalledByOthers is the result when another program uninstalled the release, which is respected.
func UninstalledByOthers(history state.History) Result {
	return Result{
		Outcome:   Stalled,
		Condition: v1alpha2.ProviderInstalledCondition,
		Reason:    v1alpha2.ExternalChangeReason,
		Message: fmt.Sprintf("release %s was uninstalled by another program, and stays so until this resource changes; "+
			"to have it installed again, change the annotation %s or set spec.release.onExternalChange to Revert; "+
			"to accept it, delete this resource", history.Release, v1alpha2.ReconcileRequestAnnotation),
	}
}

// unchanged explains what suspends a resource.
func unchanged(byOperator bool) string {
	if byOperator {
		return "nothing is changed while the operator runs with --suspend"
	}

	return "nothing is changed while spec.suspend is true"
}

// runs reports whether a version is one that the resource asks for.
func (p Provider) runs(version string) bool {
	if p.Version == version {
		return true // also of a chart of other origin, whose version may be none
	}

	matches, err := ranges.Parse(p.Version)
	if err != nil {
		return false
	}

	installed, err := semver.NewVersion(version)
	if err != nil {
		return p.Version == ""
	}

	return matches(installed)
}

// DeletionSuspended is the result of a suspended resource that is being deleted.
func DeletionSuspended(byOperator bool) Result {
	return Wait(v1alpha2.SuspendedReason, "the deletion waits: "+unchanged(byOperator), time.Time{})
}

// Suspended is the result of a suspended resource, of which nothing is changed.
func Suspended(in Input) Result {
	installed := in.Installed
	unchanged := unchanged(in.Provider.OperatorSuspended)
	idle := func(format string, args ...any) Result {
		message := fmt.Sprintf(format, args...)
		return Result{Outcome: Idle, Reason: v1alpha2.SuspendedReason, Message: message + unchanged}
	}
	name := in.Provider.Label + " " + installed.Record.AppVersion

	switch {
	case installed.Unconfirmed != "":
		return idle("%s; ", installed.Unconfirmed)
	case !installed.Record.Readable:
		return idle("Not installed, and ")
	case installed.Record.OtherChart != "":
		return idle("%s; ", installed.problem())
	case !installed.runs():
		return idle("%s is not healthy: %s; ", name, installed.problem())
	case !in.Provider.runs(installed.Record.AppVersion):
		return idle("%s is healthy, and %s waits to be installed; ", name, in.Provider.Version)
	}

	return Result{
		Outcome: Ready, Reason: v1alpha2.SuspendedReason,
		Message: fmt.Sprintf("%s is healthy; %s", name, unchanged) + keptMessage(installed.Health.Kept),
	}
}
