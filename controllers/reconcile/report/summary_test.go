package report

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/state"
)

const (
	wanted = "digest of what is wanted"
	former = "digest of what was wanted before"
)

var now = time.Date(2026, 11, 24, 8, 0, 0, 0, time.UTC)

// newInput returns what is known of a provider that asks for v1.1.0 and whose release has the given revisions, newest
// first. The newest holds v1.0.0 and is healthy.
func newInput(revisions ...state.Revision) Input {
	in := Input{
		Provider: Provider{
			Label: "infrastructure-aws", ReleaseName: "infrastructure-aws", Generation: 2, Timeout: 5 * time.Minute,
		},
		Change: Progress{Goal: "v1.1.0", Digest: wanted},
		Now:    now,
	}
	in.Installed.Observed = true
	in.Installed.History = state.History{
		Release:   types.NamespacedName{Namespace: "capa-system", Name: "infrastructure-aws"},
		Revisions: revisions,
	}

	if len(revisions) > 0 {
		in.Installed.Revision = revisions[0]
		in.Installed.Record = Record{
			Readable: true, AppVersion: "v1.0.0", Description: "Upgrade complete",
		}
		in.Installed.Health = Health{Checked: true, Healthy: true}
	}

	return in
}

// revision returns a revision that Capstan made.
func revision(number int, status v1alpha2.RevisionStatus, digest string) state.Revision {
	return state.Revision{
		ReleaseRevision: v1alpha2.ReleaseRevision{
			Number: number, Status: status, ContentDigest: digest, Digest: "v1:known",
		},
		Origin: number,
	}
}

var (
	refused  = Result{Outcome: Stalled, Reason: v1alpha2.VersionNotFoundReason, Message: "there is no v9.9.9"}
	retrying = Result{Outcome: Retrying, Reason: v1alpha2.InstallFailedReason, Message: "connection refused"}
	missing  = Health{Checked: true, Message: "manager: is missing"}
)

func TestStoppedChangeTellsWhatIsInstalled(t *testing.T) {
	unhealthy := newInput(revision(3, v1alpha2.RevisionDeployed, former))
	unhealthy.Installed.Health = missing

	kept := newInput(revision(3, v1alpha2.RevisionFailed, former))
	kept.Change.Refusal = "not rolled back to v0.9.0, because its managers are too old"

	unconfirmed := newInput()
	unconfirmed.Installed.Unconfirmed = "revision 3 is not known to be this resource's"

	sameVersion := newInput(revision(3, v1alpha2.RevisionDeployed, former))
	sameVersion.Change.Goal = "v1.0.0"

	returning := newInput(revision(3, v1alpha2.RevisionDeployed, former))
	returning.Provider.RollbackTo = 1

	unread := newInput()
	unread.Installed = Installed{}
	unread.Provider.Status.History = []v1alpha2.ReleaseRevision{{Number: 3, Version: "v1.0.0", Status: "deployed"}}

	for name, test := range map[string]struct {
		in      Input
		care    Result
		message string
	}{
		"nothing installed": {
			in:      newInput(),
			message: "not installed: there is no v9.9.9",
		},
		"healthy": {
			in:      newInput(revision(3, v1alpha2.RevisionDeployed, former)),
			message: "v1.0.0 runs; v1.1.0 is not applied: there is no v9.9.9",
		},
		"not healthy": {
			in:      unhealthy,
			message: "v1.0.0 is not healthy; v1.1.0 is not applied: there is no v9.9.9; manager: is missing",
		},
		"failed": {
			in: newInput(revision(3, v1alpha2.RevisionFailed, former)),
			message: "v1.0.0 failed; v1.1.0 is not applied: there is no v9.9.9; revision 3 is failed: " +
				"Upgrade complete",
		},
		"failed, and not rolled back": {
			in: kept,
			message: "v1.0.0 failed; v1.1.0 is not applied: there is no v9.9.9; revision 3 is failed: Upgrade complete; " +
				"not rolled back to v0.9.0, because its managers are too old",
		},
		"with a problem of its own": {
			in:      newInput(revision(3, v1alpha2.RevisionDeployed, former)),
			care:    retrying,
			message: "v1.0.0 is installed; v1.1.0 is not applied: there is no v9.9.9; connection refused",
		},
		"with the same problem": {
			in:      newInput(revision(3, v1alpha2.RevisionDeployed, former)),
			care:    refused,
			message: "v1.0.0 is installed; v1.1.0 is not applied: there is no v9.9.9",
		},
		"of an unknown program": {
			in: unconfirmed,
			message: "what is installed is not trusted: there is no v9.9.9; revision 3 is not known to be this " +
				"resource's",
		},
		"in the version that is wanted": {
			in:      sameVersion,
			message: "v1.0.0 runs; a change is not applied: there is no v9.9.9",
		},
		"before a rollback": {
			in:      returning,
			message: "v1.0.0 runs; the rollback to revision 1 is not applied: there is no v9.9.9",
		},
		"in a cluster that does not answer": {
			in:      unread,
			message: "v1.0.0 is installed; v1.1.0 is not applied: there is no v9.9.9",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			result := Summarize(test.in, test.care, refused)
			g.Expect(result.Outcome).To(Equal(Stalled))
			g.Expect(result.Reason).To(Equal(v1alpha2.VersionNotFoundReason))
			g.Expect(result.Message).To(Equal(test.message))
			g.Expect(result.Failed).To(BeEmpty())
			g.Expect(result.Message).To(HavePrefix(result.Verdict + ": "))
		})
	}
}

// TestAnotherChart checks that a release of another chart is not called the provider, whatever its objects are, and
// that no sentence lacks the version that such a chart does not have.
func TestAnotherChart(t *testing.T) {
	const (
		runs = "chart other 0.1.0 is installed in place of the provider"
		why  = "another program made revision 5 of release infrastructure-aws (Upgrade complete)"
	)

	in := newInput(state.Revision{
		ReleaseRevision: v1alpha2.ReleaseRevision{
			Number: 5, Status: v1alpha2.RevisionDeployed, Digest: "v1:known",
		},
		Origin: 4,
	})
	in.Installed.Record.AppVersion = ""
	in.Installed.Record.OtherChart = "chart other 0.1.0"
	in.Change.State.State = state.Unmanaged
	in.Change.Decision.Action = state.Hold
	in.Provider.Status.InstalledVersion = new("v1.0.0")
	in.Provider.Status.Conditions = []metav1.Condition{
		{Type: v1alpha2.ProviderInstalledCondition, Status: metav1.ConditionTrue},
		{Type: v1alpha2.ProviderUpgradedCondition, Status: metav1.ConditionTrue, Message: "Revision 4 holds v1.0.0"},
	}

	g := NewWithT(t)
	ended := Summarize(in, Result{}, Result{})
	g.Expect(ended.Outcome).To(Equal(Stalled))
	g.Expect(ended.Reason).To(Equal(v1alpha2.ExternalChangeReason))
	g.Expect(ended.Message).To(Equal(
		runs + ": " + why + "; to undo that, run `capstan upgrade apply infrastructure-aws:v1.1.0`"))

	report := Of(in, ended)
	for _, condition := range []string{v1alpha2.ReadyCondition, v1alpha2.ProviderInstalledCondition} {
		g.Expect(report.condition(condition)).To(And(
			HaveField("Status", metav1.ConditionFalse), HaveField("Message", ContainSubstring("chart other 0.1.0"))))
	}

	g.Expect(report.condition(v1alpha2.ProviderUpgradedCondition)).To(BeZero(), "it is about a revision before")

	g.Expect(Summarize(in, Result{}, refused).Message).To(Equal(
		runs + "; v1.1.0 is not applied: there is no v9.9.9; " + why))
	g.Expect(Suspended(in)).To(And(HaveField("Outcome", Idle),
		HaveField("Message", runs+": "+why+"; nothing is changed while spec.suspend is true")))
}

// TestPendingRevisionIsNotInstalled checks what is reported while helm rolls back.
func TestPendingRevisionIsNotInstalled(t *testing.T) {
	in := newInput(state.Revision{
		ReleaseRevision: v1alpha2.ReleaseRevision{
			Number: 3, Status: v1alpha2.RevisionPendingRollback, Digest: "v1:known",
		},
		Origin: 1,
	})
	in.Installed.Record.Description = "Rollback to 1"
	NewWithT(t).Expect(Summarize(in, Result{}, refused).Message).To(Equal(
		"v1.0.0 is pending-rollback as revision 3; v1.1.0 is not applied: there is no v9.9.9; " +
			"revision 3 is pending-rollback: Rollback to 1"))
}

func TestHealthDecidesWhenTheReleaseIsInSync(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(*Input)
		outcome Outcome
		reason  string
	}{
		"healthy":         {func(*Input) {}, Ready, v1alpha2.HealthyReason},
		"paused":          {func(in *Input) { in.Installed.Revision.Paused = true }, Ready, v1alpha2.PausedReason},
		"not yet healthy": {func(in *Input) { in.Installed.Health = missing }, Waiting, v1alpha2.ProgressingReason},
		"no longer healthy": {func(in *Input) {
			in.Installed.Health = missing
			in.Installed.Revision.Healthy = true
		}, Waiting, v1alpha2.UnhealthyReason},
		"never healthy": {func(in *Input) {
			in.Installed.Health = Health{Checked: true, Final: true, Message: "manager: cannot be scheduled"}
		}, Stalled, v1alpha2.UnhealthyReason},
		"made by another program": {func(in *Input) {
			in.Change.State.State = state.Unmanaged
			in.Change.Decision.Action = state.Hold
		}, Ready, v1alpha2.ExternalChangeReason},
		"made by another program, which failed": {func(in *Input) {
			in.Change.Decision.Action = state.Hold
			in.Installed.Revision.Status = v1alpha2.RevisionFailed
		}, Waiting, v1alpha2.UnhealthyReason},
		"not complete": {func(in *Input) { in.Installed.Revision.Wave = new(0) }, Waiting, v1alpha2.ProgressingReason},
		"made by another program, and not healthy": {func(in *Input) {
			in.Change.Decision.Action = state.Hold
			in.Installed.Health = missing
		}, Waiting, v1alpha2.UnhealthyReason},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := newInput(revision(1, v1alpha2.RevisionDeployed, wanted))
			in.Change.State.State = state.InSync
			test.prepare(&in)

			result := Summarize(in, Result{}, Result{})
			g.Expect(result.Outcome).To(Equal(test.outcome))
			g.Expect(result.Reason).To(Equal(test.reason))
		})
	}
}

func TestUnknownHealthIsTheResultOfCare(t *testing.T) {
	in := newInput(revision(1, v1alpha2.RevisionDeployed, wanted))
	in.Change.State.State = state.InSync
	in.Installed.Health = Health{}

	NewWithT(t).Expect(Summarize(in, retrying, Result{}).Message).To(Equal(
		"v1.0.0 has a problem: connection refused"))
}

// TestHolds: that another revision stays than the spec asks for is named, also while all is healthy.
func TestHolds(t *testing.T) {
	byHelm := func(in *Input) {
		in.Change.Decision.Action, in.Change.State.State = state.Hold, state.Unmanaged
		in.Installed.Record.Description = "Rollback to 1"
	}
	byUser := func(in *Input) { in.Provider.RollbackTo, in.Change.State.State = 1, state.InSync }
	asks := func(version string, more func(*Input)) func(*Input) {
		return func(in *Input) {
			more(in)

			in.Provider.Version, in.Change.Goal = version, version
		}
	}

	for name, test := range map[string]struct {
		change  func(*Input)
		message string
	}{
		"by helm": {
			asks("v1.1.0", byHelm),
			"v1.0.0 is healthy, held at revision 3 by another program (Rollback to 1); v1.1.0 is wanted; to undo that, " +
				"run `capstan upgrade apply infrastructure-aws:v1.1.0`; to keep v1.0.0, set spec.version to v1.0.0",
		},
		"by helm, with the same version": {
			asks("v1.0.0", byHelm),
			"v1.0.0 is healthy, held at revision 3 by another program (Rollback to 1); to undo that, " +
				"run `capstan upgrade apply infrastructure-aws:v1.0.0`",
		},
		"by helm, not healthy": {
			asks("v1.0.0", func(in *Input) { byHelm(in); in.Installed.Health = missing }),
			"v1.0.0 is not healthy, held at revision 3 by another program (Rollback to 1): manager: is missing; " +
				"to undo that, run `capstan upgrade apply infrastructure-aws:v1.0.0`",
		},
		"by rollbackTo": {
			asks("v1.1.0", byUser),
			"v1.0.0 is healthy, held at revision 1 by spec.release.rollbackTo; v1.1.0 is wanted; " +
				"to end that, run `capstan rollback infrastructure-aws --undo`",
		},
		"by rollbackTo, with a range": {
			func(in *Input) {
				byUser(in)
				in.Provider.Version, in.Provider.Status.DesiredVersion = "~1.1", "v1.1.3"
			},
			"v1.0.0 is healthy, held at revision 1 by spec.release.rollbackTo; v1.1.3 is wanted; " +
				"to end that, run `capstan rollback infrastructure-aws --undo`",
		},
		"by rollbackTo, with the same version, and paused": {
			asks("v1.0.0", func(in *Input) { byUser(in); in.Installed.Revision.Paused = true }),
			"v1.0.0 is paused, held at revision 1 by spec.release.rollbackTo: its Deployments have no replicas; " +
				"to end that, run `capstan rollback infrastructure-aws --undo`",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInput(revision(3, v1alpha2.RevisionDeployed, wanted))
			test.change(&in)
			NewWithT(t).Expect(Summarize(in, Result{}, Result{}).Message).To(Equal(test.message))
		})
	}
}

func TestReleaseThatIsNotAsWanted(t *testing.T) {
	locked := newInput(revision(1, v1alpha2.RevisionPendingUpgrade, wanted))
	locked.Change.State = state.Observed{State: state.Locked, Message: "helm is running", Until: now.Add(time.Minute)}

	unconfirmed := newInput()
	unconfirmed.Installed.Unconfirmed = "revision 3 is not known to be this resource's"

	for name, test := range map[string]struct {
		in      Input
		outcome Outcome
		message string
	}{
		"another program works on it": {locked, Waiting,
			"v1.0.0 is pending-upgrade as revision 1; v1.1.0 is not applied yet: helm is running; " +
				"revision 1 is pending-upgrade: Upgrade complete"},
		"an unknown program made it": {unconfirmed, Stalled,
			"what is installed is not trusted: revision 3 is not known to be this resource's"},
		"its records are gone": {newInput(), Retrying,
			"release capa-system/infrastructure-aws was deleted just after it was applied; it will be installed again"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			result := Summarize(test.in, Result{}, Result{})
			g.Expect(result.Outcome).To(Equal(test.outcome))
			g.Expect(result.Message).To(Equal(test.message))
			g.Expect(result.At).To(Equal(test.in.Change.State.Until))
		})
	}
}

func TestFailedAttempt(t *testing.T) {
	next := now.Add(time.Minute)
	rollback := revision(3, v1alpha2.RevisionDeployed, former)
	rollback.RollbackTo = 1

	timedOut := revision(2, v1alpha2.RevisionFailed, wanted)
	timedOut.Failure = v1alpha2.FailureUnhealthy

	hopeless := timedOut
	hopeless.Failure = v1alpha2.FailureFinal

	returned := newInput(rollback, timedOut, revision(1, v1alpha2.RevisionSuperseded, former))
	returned.Installed.Record.Description = "Rollback to 1: no node"

	twice := newInput(rollback, timedOut, timedOut, revision(1, v1alpha2.RevisionSuperseded, former))
	twice.Installed.Record.Description = returned.Installed.Record.Description

	sick := returned
	sick.Installed.Health = missing

	returning := sick
	returning.Installed.Revision.Wave = new(0)

	kept := newInput(revision(2, v1alpha2.RevisionFailed, wanted))
	kept.Change.Refusal = "not rolled back to v1.0.0 (revision 1), because it is too old"

	requested := newInput(revision(2, v1alpha2.RevisionFailed, wanted))
	requested.Provider.RollbackTo, requested.Installed.Revision.RollbackTo = 1, 1

	applied := newInput(revision(2, v1alpha2.RevisionFailed, wanted))
	applied.Change.Failure = "the API server refused Deployment manager"

	for name, test := range map[string]struct {
		in        Input
		decision  state.Decision
		outcome   Outcome
		reason    string
		condition string
		message   string
	}{
		"rolled back, with a retry to come": {
			in:       returned,
			decision: state.Decision{Action: state.Wait, Until: next},
			outcome:  Waiting, reason: v1alpha2.TimedOutWaitingForDeploymentReason,
			message: "v1.0.0 runs; v1.1.0 failed, will be tried again: no node",
		},
		"being rolled back": {
			in:       returning,
			decision: state.Decision{Action: state.Wait, Until: next},
			outcome:  Waiting, reason: v1alpha2.TimedOutWaitingForDeploymentReason,
			message: "rolling back to v1.0.0; v1.1.0 failed, will be tried again: no node; manager: is missing",
		},
		"rolled back, to what is not healthy": {
			in:       sick,
			decision: state.Decision{Action: state.Wait, Until: next},
			outcome:  Waiting, reason: v1alpha2.TimedOutWaitingForDeploymentReason,
			message: "v1.0.0 is not healthy; v1.1.0 failed, will be tried again: no node; manager: is missing",
		},
		"given up": {
			in:       twice,
			decision: state.Decision{Action: state.Stop, Attempts: 2},
			outcome:  Stalled, reason: v1alpha2.TimedOutWaitingForDeploymentReason,
			message: "v1.0.0 runs; v1.1.0 failed twice, given up: no node; to try again, run `capstan upgrade apply " +
				"infrastructure-aws:v1.1.0`",
		},
		"given up after one": {
			in:       newInput(hopeless),
			decision: state.Decision{Action: state.Stop, Attempts: 1},
			outcome:  Stalled, reason: v1alpha2.UnhealthyReason, condition: v1alpha2.ProviderInstalledCondition,
			message: "v1.1.0 failed, given up: Upgrade complete; to try again, run `capstan upgrade apply " +
				"infrastructure-aws:v1.1.0`",
		},
		"a rollback of the user, given up": {
			in:       requested,
			decision: state.Decision{Action: state.Stop, Attempts: 1},
			outcome:  Stalled, reason: v1alpha2.InstallFailedReason, condition: v1alpha2.ProviderInstalledCondition,
			message: "the rollback to revision 1 failed, given up: Upgrade complete; to try again, run `capstan rollback " +
				"infrastructure-aws 1`",
		},
		"not rolled back": {
			in:       newInput(revision(2, v1alpha2.RevisionFailed, wanted)),
			decision: state.Decision{Action: state.Wait, Until: next},
			outcome:  Waiting, reason: v1alpha2.InstallFailedReason,
			condition: v1alpha2.ProviderInstalledCondition,
			message:   "v1.1.0 failed, will be tried again: Upgrade complete",
		},
		"not rolled back, because that is refused": {
			in:       kept,
			decision: state.Decision{Action: state.Wait, Until: next},
			outcome:  Waiting, reason: v1alpha2.InstallFailedReason,
			condition: v1alpha2.ProviderInstalledCondition,
			message: "v1.1.0 failed, will be tried again: Upgrade complete; not rolled back to v1.0.0 (revision 1), " +
				"because it is too old",
		},
		"failed just now": {
			in:       applied,
			decision: state.Decision{Action: state.Wait, Until: next},
			outcome:  Waiting, reason: v1alpha2.InstallFailedReason,
			condition: v1alpha2.ProviderInstalledCondition,
			message:   "v1.1.0 failed, will be tried again: the API server refused Deployment manager",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			test.in.Change.Decision = test.decision

			result := Summarize(test.in, Result{}, Result{})
			g.Expect(result.Outcome).To(Equal(test.outcome))
			g.Expect(result.Reason).To(Equal(test.reason))
			g.Expect(result.Condition).To(Equal(test.condition))
			g.Expect(result.Message).To(Equal(test.message))
			g.Expect(result.At).To(Equal(test.decision.Until))
			g.Expect(result.Verdict).To(HaveSuffix(result.Failed))
			g.Expect(test.message).To(HavePrefix(result.Verdict + ": "))
		})
	}
}

func TestAttemptThatCanBeMadeAtOnceIsNotStalled(t *testing.T) {
	g := NewWithT(t)
	in := newInput(revision(2, v1alpha2.RevisionFailed, wanted))
	in.Change.Decision.Action = state.Apply

	result := Summarize(in, Result{}, Result{})
	g.Expect(result.Outcome).To(Equal(Waiting))
	g.Expect(result.At).To(Equal(now))
}

func TestFailedAttemptWithAProblemOfCare(t *testing.T) {
	g := NewWithT(t)
	in := newInput(revision(2, v1alpha2.RevisionFailed, wanted), revision(1, v1alpha2.RevisionSuperseded, former))
	in.Change.Decision.Action = state.Rollback

	result := Summarize(in, retrying, Result{})
	g.Expect(result.Outcome).To(Equal(Retrying))
	g.Expect(result.Message).To(HaveSuffix("; connection refused"))
	g.Expect(result.Failed).NotTo(ContainSubstring("connection refused"))
}

// TestVersionsThatAreAskedFor: charts of other origin may have versions that are none.
func TestVersionsThatAreAskedFor(t *testing.T) {
	for _, c := range []struct {
		asked, installed string
		want             bool
	}{
		{"~1.0", "v1.0.1", true},
		{"~1.0", "v1.1.0", false},
		{"", "nightly", true},
		{"nightly", "nightly", true},
		{"~1.0", "nightly", false},
		{"not a range", "v1.0.0", false},
	} {
		NewWithT(t).Expect(Provider{Version: c.asked}.runs(c.installed)).To(Equal(c.want), "%q, %q", c.asked, c.installed)
	}
}

func TestSuspended(t *testing.T) {
	unhealthy := newInput(revision(1, v1alpha2.RevisionDeployed, wanted))
	unhealthy.Installed.Health = missing

	unconfirmed := newInput()
	unconfirmed.Installed.Unconfirmed = "revision 3 is not known to be this resource's"

	asking := func(version string) Input {
		in := newInput(revision(1, v1alpha2.RevisionDeployed, wanted))
		in.Provider.Version = version

		return in
	}

	byOperator := newInput()
	byOperator.Provider.OperatorSuspended = true

	held := asking("v1.2.0")
	held.Provider.RollbackTo, held.Installed.Revision.RollbackTo = 1, 1

	const unchanged = "nothing is changed while spec.suspend is true"

	for name, test := range map[string]struct {
		in      Input
		outcome Outcome
		message string
	}{
		"nothing installed": {newInput(), Idle, "not installed; " + unchanged},
		"healthy": {
			newInput(revision(1, v1alpha2.RevisionDeployed, wanted)), Ready, "v1.0.0 is healthy; " + unchanged,
		},
		"not healthy": {
			unhealthy, Idle, "v1.0.0 is not healthy: manager: is missing; " + unchanged,
		},
		"the version":  {asking("1.0.0"), Ready, "v1.0.0 is healthy; " + unchanged},
		"in the range": {asking("~1.0"), Ready, "v1.0.0 is healthy; " + unchanged},
		"another version": {
			asking("v1.2.0"), Idle, "v1.0.0 is healthy; v1.2.0 is wanted; " + unchanged,
		},
		"another range": {
			asking("~1.2"), Idle, "v1.0.0 is healthy; ~1.2 is wanted; " + unchanged,
		},
		"by the operator": {
			byOperator, Idle, "not installed; nothing is changed while the operator runs with --suspend",
		},
		"of an unknown program": {
			unconfirmed, Idle,
			"what is installed is not trusted: revision 3 is not known to be this resource's; " + unchanged,
		},
		"held at a revision": {
			held, Ready, "v1.0.0 is healthy, held at revision 1 by spec.release.rollbackTo; v1.2.0 is wanted; " + unchanged,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			result := Suspended(test.in)
			g.Expect(result.Outcome).To(Equal(test.outcome))
			g.Expect(result.Reason).To(Equal(v1alpha2.SuspendedReason))
			g.Expect(result.Message).To(Equal(test.message))
		})
	}
}
