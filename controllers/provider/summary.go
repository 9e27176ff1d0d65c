package provider

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/ranges"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// Summary is how a reconcile ended.
type Summary struct {
	Result
	// Attempt is the revision that has failed; 0 if the wanted version has not. Failed is Result without what runs
	// meanwhile.
	Attempt int
	Failed  Result
}

// summarize combines how care and change ended: what is installed, and why it is not yet what was asked for.
func (r *run) summarize(care, change Result) Summary {
	ended := r.conclude(care, change)
	ended.Result = ended.also(undeletedMessage(r.done.undeleted)).also(r.namesKept)

	if ended.Outcome == Ready {
		ended.Result = ended.also(blockedMessage(r.selection.Pending))
		return ended
	}

	// A manager that gets a flag which it does not have stops at its start, and only its log says why.
	for _, f := range r.change.plan.Warnings.Flags {
		said := ended.text()
		if strings.Contains(said, " "+f.Deployment+":") || strings.Contains(said, "(pod "+f.Deployment+"-") {
			ended.Result = ended.also(f.String())
		}
	}

	return ended
}

func (r *run) conclude(care, change Result) Summary {
	if change.Ends() {
		return Summary{Result: r.stopped(care, change)}
	}

	inSync := r.change.release.State.State == state.InSync || r.change.held()

	switch {
	case inSync && r.installed.otherChart != "":
		return Summary{Result: r.otherChart()}
	case inSync && care.Ends():
		has := r.installed.version() + " has a problem"
		return Summary{Result: message{runs: has, causes: []string{care.text()}}.of(care)}
	case inSync:
		return Summary{Result: r.healthResult()}
	case r.change.release.State.State == state.Locked:
		locked := wait(v1alpha2.ProgressingReason, r.change.release.State.Message, r.change.release.State.Until)
		return Summary{Result: r.stopped(care, locked)}
	case r.installed.unconfirmed != nil:
		return Summary{Result: r.unconfirmed().of(Result{
			Outcome: Stalled, Condition: v1alpha2.ProviderInstalledCondition, Reason: v1alpha2.InstallFailedReason,
		})}
	case r.installed.Record == nil && care.Ends():
		return Summary{Result: care}
	case r.installed.Record == nil:
		deleted := fmt.Sprintf("release %s was deleted just after it was applied; it will be installed again",
			r.installed.History.Release)

		return Summary{Result: because(deleted).of(Result{
			Outcome: Retrying, Condition: v1alpha2.ProviderInstalledCondition, Reason: v1alpha2.InstallFailedReason,
			Limited: true,
		})}
	}

	return r.attemptFailed(care)
}

// withoutName replaces the name that a cause begins with, where the sentence names it already.
func withoutName(cause, name string) string {
	if rest, found := strings.CutPrefix(cause, name+" "); found {
		return "it " + rest
	}

	return cause
}

// stopped is the result of a change that ended early: what runs meanwhile, and why what is wanted is not applied.
func (r *run) stopped(care, change Result) Result {
	change.Cause = change.text()
	said := message{runs: r.running(care), causes: []string{change.Cause}}

	yet := yetUnless(change.Outcome == Stalled)

	switch {
	case change.headline() != "":
		return change
	case r.installed.unconfirmed != nil:
		said = r.unconfirmed()
		said.causes = []string{change.Cause, r.installed.unconfirmed.Error()}

		return said.of(change)
	case r.installed.otherChart != "":
		said.runs, said.wanted = r.otherRuns(), r.wanted()+" is not applied"+yet
		said.causes = append(said.causes, r.installed.problem())

		return said.of(change)
	case said.runs == "" && r.installed.unreadable():
		return change
	case said.runs == "":
		said.runs = "not installed" + yet
		return said.of(change)
	case r.change.release.State.State == state.InSync:
		said.runs = r.installed.version() + " is not ready" + yet
		return said.of(change)
	case change.Outcome != Stalled && r.installsFirst():
		said.runs = r.installed.version() + " is not installed yet"
		return said.of(change)
	}

	said.wanted = r.wanted() + " is not applied" + yet
	said.causes[0] = withoutName(change.Cause, "version "+r.wanted())

	if r.installed.Record != nil && !r.installed.runs() && (r.installed.health != nil || !r.installed.deployed()) {
		said.causes = append(said.causes, r.installed.problem())
	}

	said.causes = append(said.causes, r.done.refusal)

	if care.Ends() {
		said.causes = append(said.causes, care.text())
	}

	return said.of(change)
}

// installsFirst reports whether the first installation of a version was begun, and not completed. It is repeated, so
// what became of it so far is of no interest.
func (r *run) installsFirst() bool {
	newest := r.installed.Newest.Status
	applied := func(revision state.Revision) bool { return revision.Status.Applied() }

	return (newest == v1alpha2.RevisionPendingInstall || newest == v1alpha2.RevisionFailed) &&
		ranges.IsSame(r.wantedVersion(), r.installed.version()) &&
		!slices.ContainsFunc(r.installed.History.Revisions, applied)
}

// yetUnless returns the end of what is not done, unless it is not done by itself.
func yetUnless(stalled bool) string {
	if stalled {
		return ""
	}

	return " yet"
}

// unconfirmed explains that the newest revision is not known to be the resource's.
func (r *run) unconfirmed() message {
	return message{runs: "what is installed is not trusted", causes: []string{r.installed.unconfirmed.Error()}}
}

// healthResult is the result when the release is what it should be: its health decides.
func (r *run) healthResult() Result {
	held, found := r.change.held(), ptr.Deref(r.installed.health, health.Report{})
	version, problem := r.installed.version(), r.installed.problem()
	said := message{runs: version + " is healthy"}
	ready := func(reason string) Result {
		return said.of(Result{Outcome: Ready, Reason: reason}).also(r.installed.replicas.keptMessage())
	}

	if r.installed.runs() && !held && r.installed.paused() {
		said.runs = version + " is paused"
		said.causes = []string{"its Deployments have no replicas"}
	}

	if !r.installed.runs() {
		said.runs = version + " is not healthy"
		said.causes = []string{problem}
	}

	said = r.hold(said)

	switch {
	case r.installed.runs() && held:
		return ready(v1alpha2.ExternalChangeReason)
	case r.installed.runs() && r.installed.paused():
		return ready(v1alpha2.PausedReason)
	case r.installed.runs():
		return ready(v1alpha2.HealthyReason)
	case held:
		return said.of(wait(v1alpha2.UnhealthyReason, "", time.Time{}))
	case found.Verdict() == health.Stop:
		return said.of(Result{Outcome: Stalled, Reason: v1alpha2.UnhealthyReason})
	case r.installed.Newest.Healthy || found.Failed():
		result := said.of(wait(v1alpha2.UnhealthyReason, "", time.Time{}))
		result.Limited = true

		return result
	}

	applying := message{runs: "applying " + version, causes: []string{problem}}
	if r.installed.Newest.RollbackTo != 0 {
		applying.runs = "rolling back to " + version
	}

	return applying.of(wait(v1alpha2.ProgressingReason, "", time.Time{}))
}

// hold adds to a message why another revision than the spec asks for stays, and how to end that.
func (r *run) hold(said message) message {
	switch {
	case r.change.held():
		said.runs += fmt.Sprintf(", held at revision %d by another program", r.installed.Newest.Number)
		if r.installed.deployed() {
			said.runs += fmt.Sprintf(" (%s)", r.installed.description())
		}

		said.wanted = r.differs()
		said.remedy = r.remedy("to undo that")

		if said.wanted != "" {
			said.remedy = r.keep() + "; " + said.remedy
		}
	case r.rollbackTo() != 0:
		said.runs += rolledBackTo(r.rollbackTo())
		said.wanted = r.differs()
		said.remedy = fmt.Sprintf("to end that, run `capstan rollback %s --undo`", v1alpha2.Label(r.provider))

		if said.wanted != "" {
			said.remedy = fmt.Sprintf("%s; to try %s again, run `capstan rollback %s --undo`", r.keep(), r.askedVersion(),
				v1alpha2.Label(r.provider))
		}
	}

	return said
}

func rolledBackTo(revision int) string {
	return fmt.Sprintf(", rolled back to revision %d by spec.release.rollbackTo", revision)
}

// undeletedMessage names objects of earlier revisions that finalizers hold.
func undeletedMessage(undeleted string) string {
	if undeleted == "" {
		return ""
	}

	return "no longer part of the release: " + undeleted + "; the program that added a finalizer has to remove it"
}

// blockedMessage says which automatic upgrade a user has to do something about; empty for none.
func blockedMessage(pending *v1alpha2.PendingUpgrade) string {
	if pending == nil || !pending.Blocked {
		return ""
	}

	return fmt.Sprintf("the automatic upgrade to %s is blocked: %s", pending.Version, pending.Message)
}

// attemptFailed is the result when the goal was attempted and failed: what runs now, what happens next, and why.
func (r *run) attemptFailed(care Result) Summary {
	decision, newest := r.change.release.Decision, r.installed.Newest
	deployed := r.installed.deployed()
	result := Result{Outcome: Waiting, Reason: r.attemptReason(), At: decision.Until}

	switch {
	case decision.Action == state.Apply:
		result.At = r.policy.Now
	case decision.Until.IsZero():
		result.Outcome = Stalled
	}

	said := r.attemptMessage(result.Outcome == Waiting)

	if !deployed {
		result.Condition = v1alpha2.ProviderInstalledCondition
	}

	if care.Outcome == Retrying {
		result.Outcome = Retrying
	}

	failed := said.of(result)

	if deployed || newest.RollbackTo != 0 && r.rollbackTo() == 0 {
		said.runs = r.running(care)
	}

	// That the rollback to the same version failed says it all.
	if said.runs != "" && newest.Status == v1alpha2.RevisionFailed && said.wanted == r.installed.version()+" failed" {
		said.wanted = ""
	}

	said.causes = append(said.causes, r.problemSince())

	// The rollback, for example, could not be completed.
	if care.Ends() {
		said.causes = append(said.causes, care.text())
	}

	return Summary{Result: said.of(result), Attempt: r.failedRevision(), Failed: failed}
}

// problemSince is why what runs since the attempt failed is not healthy; empty if it is, or if the attempt failed for
// the same reason, which lasts while a rollback rolls out.
func (r *run) problemSince() string {
	if !r.installed.deployed() || r.installed.health == nil || r.installed.runs() {
		return ""
	}

	problem := r.installed.problem()
	if strings.Contains(r.failure(), problem) {
		return ""
	}

	return problem
}

// attemptMessage says that the attempt failed, why, and what follows.
func (r *run) attemptMessage(waits bool) message {
	said := message{
		wanted: r.attempted() + " failed" + times(r.installed.History.Failures(r.change.release.Digest)),
		causes: []string{r.failure(), r.done.refusal},
	}

	switch {
	case r.change.release.Decision.Action == state.Stop:
		said.wanted += ", given up"
		said.remedy = r.remedy("to try again")
	case waits:
		said.wanted += ", will be tried again"
	}

	return said
}

// failedRevision returns the revision of the newest attempt.
func (r *run) failedRevision() int {
	if attempts := r.installed.History.Attempts(r.change.release.Digest); len(attempts) > 0 {
		return attempts[0].Number
	}

	return r.installed.Newest.Number
}

// attempted names what was attempted.
func (r *run) attempted() string {
	switch {
	case r.rollbackTo() != 0:
		return r.wanted()
	case r.installed.deployed() && ranges.IsSame(r.change.goal.version, r.installed.version()):
		return "a change of its settings"
	}

	return r.change.goal.version
}

// attemptReason returns the reason of the newest failed attempt.
func (r *run) attemptReason() string {
	attempts := r.installed.History.Attempts(r.change.release.Digest)
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
func (r *run) failure() string {
	if r.done.failure != nil {
		return object.Text(r.done.failure)
	}

	revision, description := r.installed.Newest, r.installed.description()

	return strings.TrimPrefix(description, fmt.Sprintf("Rollback to %d: ", revision.RollbackTo))
}

// otherChart is the result when another program has replaced the provider by another chart.
func (r *run) otherChart() Result {
	said := message{
		runs: r.otherRuns(), causes: []string{r.installed.problem()}, remedy: r.remedy("to undo that"),
	}

	return said.of(Result{
		Outcome: Stalled, Condition: v1alpha2.ProviderInstalledCondition, Reason: v1alpha2.ExternalChangeReason,
	})
}

func (r *run) otherRuns() string {
	return r.installed.otherChart + " is installed in place of the provider"
}

// uninstalledByOthers is the result when another program uninstalled the release, which is respected.
func (r *run) uninstalledByOthers() Result {
	said := message{
		runs: "not installed",
		causes: []string{fmt.Sprintf("another program uninstalled release %s, which stays so until this resource changes",
			r.installed.History.Release)},
		remedy: r.remedy("to install it again") + "; to accept that, delete this resource",
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

// deletionSuspended is the result of a suspended resource that is being deleted.
func deletionSuspended(byOperator bool) Result {
	return wait(v1alpha2.SuspendedReason, "the deletion waits: "+unchanged(byOperator), time.Time{})
}

// suspended is the result of a suspended resource, of which nothing is changed.
func (r *run) suspended() Result {
	version := r.installed.version()
	said, isHealthy := message{}, false

	switch {
	case r.installed.unconfirmed != nil:
		said = r.unconfirmed()
	case r.installed.Record == nil:
		said.runs = "not installed"
	case r.installed.otherChart != "":
		said.runs, said.causes = r.otherRuns(), []string{r.installed.problem()}
	case !r.installed.runs():
		said.runs, said.causes = version+" is not healthy", []string{r.installed.problem()}
	default:
		said.runs, said.wanted, isHealthy = version+" is healthy", r.differs(), true
	}

	said.remedy = unchanged(r.Suspended)
	to := r.rollbackTo()

	if !isHealthy || said.wanted != "" && to == 0 {
		return said.of(Result{Outcome: Idle, Reason: v1alpha2.SuspendedReason})
	}

	if to != 0 && to == r.installed.Newest.RollbackTo {
		said.runs += rolledBackTo(to)
	}

	return said.of(Result{Outcome: Ready, Reason: v1alpha2.SuspendedReason}).also(r.installed.replicas.keptMessage())
}
