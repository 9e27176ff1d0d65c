package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/ranges"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// Summary is how a reconcile ended.
type Summary struct {
	Result
	// Failed says how often the wanted version has failed, and what follows from that; empty if it has not.
	Failed string
}

// Summarize combines how care and change ended: what is installed, and why it is not yet what was asked for.
func Summarize(in Input, care, change Result) Summary {
	ended := summarize(in, care, change)
	ended.Result = ended.also(undeletedMessage(in.Installed.Undeleted))

	if ended.Outcome == Ready {
		return ended
	}

	// A manager that gets a flag which it does not have stops at its start, and only its log says why.
	for _, f := range in.Change.Flags {
		if strings.Contains(ended.Message, "/"+f.Deployment+":") {
			ended.Result = ended.also(f.Warning)
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
		return Summary{Result: otherChart(in)}
	case inSync && care.Ends():
		has := installed.Record.AppVersion + " has a problem"
		return Summary{Result: message{runs: has, causes: []string{care.Message}}.of(care)}
	case inSync:
		return Summary{Result: healthResult(in)}
	case in.Change.State.State == state.Locked:
		locked := Wait(v1alpha2.ProgressingReason, in.Change.State.Message, in.Change.State.Until)
		return Summary{Result: stopped(in, care, locked)}
	case installed.Unconfirmed != "":
		return Summary{Result: unconfirmed(installed).of(Result{
			Outcome: Stalled, Condition: v1alpha2.ProviderInstalledCondition, Reason: v1alpha2.InstallFailedReason,
		})}
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

// stopped is the result of a change that ended early: what runs meanwhile, and why what is wanted is not applied.
func stopped(in Input, care, change Result) Result {
	installed := in.Installed
	change.Cause = change.Message
	said := message{runs: running(in, care), causes: []string{change.Message}}

	yet := ""
	if change.Outcome != Stalled {
		yet = " yet"
	}

	switch {
	case change.Verdict != "":
		return change
	case installed.Unconfirmed != "":
		said = unconfirmed(installed)
		said.causes = []string{change.Message, installed.Unconfirmed}

		return said.of(change)
	case installed.Record.OtherChart != "":
		said.runs, said.wanted = otherRuns(installed), in.wanted()+" is not applied"+yet
		said.causes = append(said.causes, installed.problem())

		return said.of(change)
	case said.runs == "" && len(installed.History.Revisions) > 0: // which cannot be read
		return change
	case said.runs == "":
		said.runs = "not installed" + yet
		return said.of(change)
	case in.Change.State.State == state.InSync:
		said.runs = installed.Record.AppVersion + " is not ready" + yet
		return said.of(change)
	}

	said.wanted = in.wanted() + " is not applied" + yet

	if installed.Record.Readable && !installed.runs() && (installed.Health.Checked || !installed.deployed()) {
		said.causes = append(said.causes, installed.problem())
	}

	said.causes = append(said.causes, in.Change.Refusal)

	if care.Ends() {
		said.causes = append(said.causes, care.Message)
	}

	return said.of(change)
}

// unconfirmed explains that the newest revision is not known to be the resource's.
func unconfirmed(installed Installed) message {
	return message{runs: "what is installed is not trusted", causes: []string{installed.Unconfirmed}}
}

// healthResult is the result when the release is what it should be: its health decides.
func healthResult(in Input) Result {
	installed, held := in.Installed, in.Change.held()
	version, problem := installed.Record.AppVersion, installed.problem()
	said := message{runs: version + " is healthy"}
	ready := func(reason string) Result {
		return said.of(Result{Outcome: Ready, Reason: reason}).also(keptMessage(installed.Health.Kept))
	}

	if installed.runs() && !held && installed.paused() {
		said.runs = version + " is paused"
		said.causes = []string{"its Deployments have no replicas"}
	}

	if !installed.runs() {
		said.runs = version + " is not healthy"
		said.causes = []string{problem}
	}

	said = in.hold(said)

	switch {
	case installed.runs() && held:
		return ready(v1alpha2.ExternalChangeReason)
	case installed.runs() && installed.paused():
		return ready(v1alpha2.PausedReason)
	case installed.runs():
		return ready(v1alpha2.HealthyReason)
	case held:
		return said.of(Wait(v1alpha2.UnhealthyReason, "", time.Time{}))
	case installed.Health.Final:
		return said.of(Result{Outcome: Stalled, Reason: v1alpha2.UnhealthyReason})
	case installed.Revision.Healthy || installed.Health.Failed:
		result := said.of(Wait(v1alpha2.UnhealthyReason, "", time.Time{}))
		result.Limited = true

		return result
	}

	applying := message{runs: "applying " + version, causes: []string{problem}}
	if installed.Revision.RollbackTo != 0 {
		applying.runs = "rolling back to " + version
	}

	return applying.of(Wait(v1alpha2.ProgressingReason, "", time.Time{}))
}

// hold adds to a message why another revision than the spec asks for stays, and how to end that.
func (i Input) hold(said message) message {
	version := i.Installed.Record.AppVersion

	switch {
	case i.Change.held():
		said.runs += heldAt(i.Installed.Revision.Number, "another program")
		if i.Installed.deployed() {
			said.runs += fmt.Sprintf(" (%s)", i.Installed.Record.Description)
		}

		said.wanted = i.differs()
		said.remedy = i.remedy("to undo that")

		if said.wanted != "" {
			said.remedy += fmt.Sprintf("; to keep %s, set spec.version to %[1]s", version)
		}
	case i.Provider.RollbackTo != 0:
		said.runs += heldAt(i.Provider.RollbackTo, "spec.release.rollbackTo")
		said.wanted = i.differs()
		said.remedy = fmt.Sprintf("to end that, run `capstan rollback %s --undo`", i.Provider.Label)
	}

	return said
}

func heldAt(revision int, by string) string {
	return fmt.Sprintf(", held at revision %d by %s", revision, by)
}

// keptMessage explains containers that a revision did not change, and how to change them.
func keptMessage(kept string) string {
	if kept == "" {
		return ""
	}

	return fmt.Sprintf("%s, because %s is %s: change it yourself, or delete the object to have it created again",
		kept, v1alpha2.UpdatePolicyAnnotation, v1alpha2.UpdateOnce)
}

// undeletedMessage names objects of earlier revisions that finalizers hold.
func undeletedMessage(undeleted string) string {
	if undeleted == "" {
		return ""
	}

	return "no longer part of the release: " + undeleted + "; the program that added a finalizer has to remove it"
}

// attemptFailed is the result when the goal was attempted and failed: what runs now, what happens next, and why.
func attemptFailed(in Input, care Result) Summary {
	installed, decision := in.Installed, in.Change.Decision
	deployed := installed.deployed()
	result := Result{Outcome: Waiting, Reason: failureReason(in), At: decision.Until}
	said := message{causes: []string{failure(in), in.Change.Refusal}}

	switch {
	case decision.Action == state.Apply:
		result.At = in.Now
	case decision.Until.IsZero():
		result.Outcome = Stalled
	}

	if deployed || installed.Revision.RollbackTo != 0 && in.Provider.RollbackTo == 0 {
		said.runs = running(in, care)
	}

	if deployed && installed.Health.Checked && !installed.runs() {
		said.causes = append(said.causes, installed.problem())
	}

	// The rollback, for example, could not be completed.
	if care.Ends() {
		said.causes = append(said.causes, care.Message)
	}

	said.wanted = attempted(in) + " failed" + times(installed.History.Failures(in.Change.Digest))

	switch {
	case decision.Action == state.Stop:
		said.wanted += ", given up"
		said.remedy = in.remedy("to try again")
	case result.Outcome == Waiting:
		said.wanted += ", will be tried again"
	}

	if !deployed {
		result.Condition = v1alpha2.ProviderInstalledCondition
	}

	if care.Outcome == Retrying {
		result.Outcome = Retrying
	}

	return Summary{Result: said.of(result), Failed: said.wanted}
}

// attempted names what was attempted.
func attempted(in Input) string {
	if in.Provider.RollbackTo != 0 {
		return in.wanted()
	}

	return in.Change.Goal
}

// failureReason returns the reason of the newest failed attempt.
func failureReason(in Input) string {
	attempts := in.Installed.History.Attempts(in.Change.Digest)
	if len(attempts) == 0 {
		return v1alpha2.InstallFailedReason
	}

	switch attempts[0].Failure {
	case v1alpha2.FailureUnhealthy:
		return v1alpha2.TimedOutWaitingForDeploymentReason
	case v1alpha2.FailureFinal:
		return v1alpha2.UnhealthyReason
	default:
		return v1alpha2.InstallFailedReason
	}
}

// failure returns why the newest attempt failed.
func failure(in Input) string {
	if in.Change.Failure != "" {
		return in.Change.Failure
	}

	revision, description := in.Installed.Revision, in.Installed.Record.Description

	return strings.TrimPrefix(description, fmt.Sprintf("Rollback to %d: ", revision.RollbackTo))
}

// otherChart is the result when another program has replaced the provider by another chart.
func otherChart(in Input) Result {
	said := message{
		runs: otherRuns(in.Installed), causes: []string{in.Installed.problem()}, remedy: in.remedy("to undo that"),
	}

	return said.of(Result{
		Outcome: Stalled, Condition: v1alpha2.ProviderInstalledCondition, Reason: v1alpha2.ExternalChangeReason,
	})
}

func otherRuns(installed Installed) string {
	return installed.Record.OtherChart + " is installed in place of the provider"
}

// UninstalledByOthers is the result when another program uninstalled the release, which is respected.
func UninstalledByOthers(in Input) Result {
	said := message{
		runs: "not installed",
		causes: []string{fmt.Sprintf("another program uninstalled release %s, which stays so until this resource changes",
			in.Installed.History.Release)},
		remedy: in.remedy("to install it again") + "; to accept that, delete this resource",
	}

	return said.of(Result{
		Outcome: Stalled, Condition: v1alpha2.ProviderInstalledCondition, Reason: v1alpha2.ExternalChangeReason,
	})
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
	version := installed.Record.AppVersion
	said, isHealthy := message{}, false

	switch {
	case installed.Unconfirmed != "":
		said = unconfirmed(installed)
	case !installed.Record.Readable:
		said.runs = "not installed"
	case installed.Record.OtherChart != "":
		said.runs, said.causes = otherRuns(installed), []string{installed.problem()}
	case !installed.runs():
		said.runs, said.causes = version+" is not healthy", []string{installed.problem()}
	default:
		said.runs, said.wanted, isHealthy = version+" is healthy", in.differs(), true
	}

	said.remedy = unchanged(in.Provider.OperatorSuspended)
	to := in.Provider.RollbackTo

	if !isHealthy || said.wanted != "" && to == 0 {
		return said.of(Result{Outcome: Idle, Reason: v1alpha2.SuspendedReason})
	}

	if to != 0 && to == installed.Revision.RollbackTo {
		said.runs += heldAt(to, "spec.release.rollbackTo")
	}

	return said.of(Result{Outcome: Ready, Reason: v1alpha2.SuspendedReason}).also(keptMessage(installed.Health.Kept))
}
