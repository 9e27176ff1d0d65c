package provider

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// absent describes missing.
const absent = "Deployment manager: does not exist"

var (
	refused  = Result{Outcome: Stalled, Reason: v1alpha2.VersionNotFoundReason, message: because("there is no v9.9.9")}
	retrying = Result{Outcome: Retrying, Reason: v1alpha2.InstallFailedReason, message: because("connection refused")}
	// untrusted is why a revision is not trusted.
	untrusted = release.Unconfirmed(types.NamespacedName{}, 3, 0)

	missing  = &health.Report{Objects: []health.ObjectHealth{unhealthy("does not exist", status.NotFoundStatus)}}
	hopeless = func() *health.Report {
		manager := unhealthy("cannot be scheduled", status.InProgressStatus)
		manager.Final = true

		return &health.Report{Objects: []health.ObjectHealth{manager}}
	}()
)

func TestStoppedChangeTellsWhatIsInstalled(t *testing.T) {
	unhealthy := newTestRun(revision(3, v1alpha2.RevisionDeployed, former))
	unhealthy.installed.health = missing

	kept := newTestRun(revision(3, v1alpha2.RevisionFailed, former))
	kept.done.refusal = "not rolled back to v0.9.0, because its managers are too old"

	unconfirmed := newTestRun()
	unconfirmed.installed.unconfirmed = untrusted

	sameVersion := newTestRun(revision(3, v1alpha2.RevisionDeployed, former))
	sameVersion.change.goal.version = "v1.0.0"

	returning := newTestRun(revision(3, v1alpha2.RevisionDeployed, former))
	asksForRevision(returning, 1)

	unread := newTestRun()
	unread.installed = installed{}
	unread.provider.GetStatus().History = []v1alpha2.ReleaseRevision{{Number: 3, Version: "v1.0.0", Status: "deployed"}}

	for name, test := range map[string]struct {
		r       *run
		care    Result
		message string
	}{
		"nothing installed": {
			r:       newTestRun(),
			message: "not installed: there is no v9.9.9",
		},
		"healthy": {
			r:       newTestRun(revision(3, v1alpha2.RevisionDeployed, former)),
			message: "v1.0.0 runs; v1.1.0 is not applied: there is no v9.9.9",
		},
		"not healthy": {
			r:       unhealthy,
			message: "v1.0.0 is not healthy; v1.1.0 is not applied: there is no v9.9.9; " + absent,
		},
		"failed": {
			r: newTestRun(revision(3, v1alpha2.RevisionFailed, former)),
			message: "v1.0.0 failed; v1.1.0 is not applied: there is no v9.9.9; revision 3 is failed: " +
				"Upgrade complete",
		},
		"failed, and not rolled back": {
			r: kept,
			message: "v1.0.0 failed; v1.1.0 is not applied: there is no v9.9.9; revision 3 is failed: Upgrade complete; " +
				"not rolled back to v0.9.0, because its managers are too old",
		},
		"with a problem of its own": {
			r:       newTestRun(revision(3, v1alpha2.RevisionDeployed, former)),
			care:    retrying,
			message: "v1.0.0 is installed; v1.1.0 is not applied: there is no v9.9.9; connection refused",
		},
		"with the same problem": {
			r:       newTestRun(revision(3, v1alpha2.RevisionDeployed, former)),
			care:    refused,
			message: "v1.0.0 is installed; v1.1.0 is not applied: there is no v9.9.9",
		},
		"of an unknown program": {
			r:       unconfirmed,
			message: "what is installed is not trusted: there is no v9.9.9; " + untrusted.Error(),
		},
		"in the version that is wanted": {
			r:       sameVersion,
			message: "v1.0.0 runs; a change is not applied: there is no v9.9.9",
		},
		"before a rollback": {
			r:       returning,
			message: "v1.0.0 runs; the rollback to revision 1 is not applied: there is no v9.9.9",
		},
		"in a cluster that does not answer": {
			r:       unread,
			message: "v1.0.0 is installed; v1.1.0 is not applied: there is no v9.9.9",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			result := test.r.summarize(test.care, refused)
			g.Expect(result.Outcome).To(Equal(Stalled))
			g.Expect(result.Reason).To(Equal(v1alpha2.VersionNotFoundReason))
			g.Expect(result.text()).To(Equal(test.message))
			g.Expect(result.Failed).To(BeZero())
			g.Expect(result.text()).To(HavePrefix(result.headline() + ": "))
		})
	}
}

// TestVersionIsNamedOnce checks that a cause does not repeat the version that is not applied.
func TestVersionIsNamedOnce(t *testing.T) {
	g := NewWithT(t)
	missing := Result{Outcome: Stalled, message: because("version v1.1.0 is not available; the source has v1.0.0")}

	g.Expect(newTestRun(revision(3, v1alpha2.RevisionDeployed, former)).summarize(Result{}, missing).text()).To(Equal(
		"v1.0.0 runs; v1.1.0 is not applied: it is not available; the source has v1.0.0"))
	g.Expect(newTestRun().summarize(Result{}, missing).text()).To(Equal(
		"not installed: version v1.1.0 is not available; the source has v1.0.0"))
}

// TestAnotherChart checks that a release of another chart is not called the provider, whatever its objects are, and
// that no sentence lacks the version that such a chart does not have.
func TestAnotherChart(t *testing.T) {
	const (
		runs = "chart other 0.1.0 is installed in place of the provider"
		why  = "another program made revision 5 of release infrastructure-aws (Upgrade complete)"
	)

	r := newTestRun(state.Revision{
		ReleaseRevision: v1alpha2.ReleaseRevision{
			Number: 5, Status: v1alpha2.RevisionDeployed, Digest: "v1:known",
		},
		Origin: 4,
	})
	r.installed.Record.AppVersion = ""
	r.installed.otherChart = "chart other 0.1.0"
	r.change.release.State.State = state.Unmanaged
	r.change.release.Decision.Action = state.Hold
	r.provider.GetStatus().InstalledVersion = new("v1.0.0")
	r.provider.GetStatus().Conditions = []metav1.Condition{
		{Type: v1alpha2.ProviderInstalledCondition, Status: metav1.ConditionTrue},
		{Type: v1alpha2.ProviderUpgradedCondition, Status: metav1.ConditionTrue, Message: "Revision 4 has v1.0.0"},
	}

	g := NewWithT(t)
	ended := r.summarize(Result{}, Result{})
	g.Expect(ended.Outcome).To(Equal(Stalled))
	g.Expect(ended.Reason).To(Equal(v1alpha2.ExternalChangeReason))
	g.Expect(ended.text()).To(Equal(
		runs + ": " + why + "; to undo that, run `capstan reconcile infrastructure-aws`"))

	report := r.report(ended, now)
	for _, condition := range []string{v1alpha2.ReadyCondition, v1alpha2.ProviderInstalledCondition} {
		g.Expect(report.condition(condition)).To(And(
			HaveField("Status", metav1.ConditionFalse), HaveField("Message", ContainSubstring("chart other 0.1.0"))))
	}

	g.Expect(report.condition(v1alpha2.ProviderUpgradedCondition)).To(BeZero(), "it is about a revision before")
	g.Expect(report.Status.InstalledVersion).To(HaveValue(Equal("v1.0.0")), "the other chart is not the provider")

	g.Expect(r.summarize(Result{}, refused).text()).To(Equal(
		runs + "; v1.1.0 is not applied: there is no v9.9.9; " + why))
	g.Expect(r.suspended()).To(And(HaveField("Outcome", Idle),
		say(runs+": "+why+"; nothing is changed while spec.suspend is true")))
}

// TestPendingRevisionIsNotInstalled checks what is reported while helm rolls back.
func TestPendingRevisionIsNotInstalled(t *testing.T) {
	r := newTestRun(state.Revision{
		ReleaseRevision: v1alpha2.ReleaseRevision{
			Number: 3, Status: v1alpha2.RevisionPendingRollback, Digest: "v1:known",
		},
		Origin: 1,
	})
	r.installed.Record.Description = "Rollback to 1"
	NewWithT(t).Expect(r.summarize(Result{}, refused).text()).To(Equal(
		"v1.0.0 is pending-rollback as revision 3; v1.1.0 is not applied: there is no v9.9.9; " +
			"revision 3 is pending-rollback: Rollback to 1"))
}

// TestFirstInstallationWithoutAnswer: a first installation that meets a time-out has one state, and its message has no
// URL of the API server.
func TestFirstInstallationWithoutAnswer(t *testing.T) {
	late := &url.Error{
		Op: "Put", URL: "https://10.96.0.1:443/api/v1/namespaces/capa-system/secrets/x", Err: context.DeadlineExceeded,
	}
	record := storage.NewError("capa-system/sh.helm.release.v1.infrastructure-aws.v1", late)

	const why = "Helm's record in Secret capa-system/sh.helm.release.v1.infrastructure-aws.v1 could not be stored: " +
		"the API server has not answered in time"

	for name, test := range map[string]struct {
		newest []state.Revision
		err    error
		want   string
	}{
		"before it": {nil, fmt.Errorf("list pods: %w", late),
			"not installed yet: list pods: the API server has not answered in time"},
		"while it is recorded": {
			[]state.Revision{revision(1, v1alpha2.RevisionPendingInstall, wanted)}, record,
			"v1.0.0 is not installed yet: " + why},
		"when it is repeated": {
			[]state.Revision{revision(1, v1alpha2.RevisionFailed, wanted)}, record, "v1.0.0 is not installed yet: " + why},
		"in an upgrade": {
			[]state.Revision{revision(2, v1alpha2.RevisionFailed, wanted), revision(1, v1alpha2.RevisionSuperseded, former)},
			record, "v1.0.0 failed; a change is not applied yet: " + why + "; revision 2 is failed: Upgrade complete"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTestRun(test.newest...)
			r.change.goal.version = "v1.0.0"

			NewWithT(t).Expect(r.summarize(Result{}, resultOf(test.err)).text()).To(Equal(test.want))
		})
	}
}

// TestNamesKept: a CRD that is served without a name that it asks for makes a provider no less ready.
func TestNamesKept(t *testing.T) {
	r := newTestRun(revision(1, v1alpha2.RevisionDeployed, wanted))
	r.change.release.State.State = state.InSync
	r.namesKept = `CustomResourceDefinition a.example.com is served without a new name, because "dm" is already in use`

	NewWithT(t).Expect(r.summarize(Result{}, Result{}).Result).To(And(
		HaveField("Outcome", Ready), say("v1.0.0 is healthy; "+r.namesKept)))
}

// TestBlockedUpgrade: Ready, which stays True, says what a user has to do about an automatic upgrade.
func TestBlockedUpgrade(t *testing.T) {
	pending := &v1alpha2.PendingUpgrade{Version: "v1.1.0", Message: "required variables have no value: REGION"}

	for name, c := range map[string]struct {
		blocked bool
		want    string
	}{
		"that waits": {false, "v1.0.0 is healthy"},
		"that does not start": {
			true, "v1.0.0 is healthy; the automatic upgrade to v1.1.0 is blocked: required variables have no value: REGION",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := newTestRun(revision(1, v1alpha2.RevisionDeployed, wanted))
			r.change.release.State.State = state.InSync
			r.selection.Pending = pending.DeepCopy()
			r.selection.Pending.Blocked = c.blocked

			g.Expect(r.summarize(Result{}, Result{}).Result).To(And(
				HaveField("Outcome", Ready), say(c.want)))
		})
	}
}

func TestHealthDecidesWhenTheReleaseIsInSync(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(*run)
		outcome Outcome
		reason  string
	}{
		"healthy":         {func(*run) {}, Ready, v1alpha2.HealthyReason},
		"paused":          {func(r *run) { r.installed.Newest.Paused = true }, Ready, v1alpha2.PausedReason},
		"not yet healthy": {func(r *run) { r.installed.health = missing }, Waiting, v1alpha2.ProgressingReason},
		"no longer healthy": {func(r *run) {
			r.installed.health = missing
			r.installed.Newest.Healthy = true
		}, Waiting, v1alpha2.UnhealthyReason},
		"never healthy": {func(r *run) {
			r.installed.health = hopeless
		}, Stalled, v1alpha2.UnhealthyReason},
		"made by another program": {func(r *run) {
			r.change.release.State.State = state.Unmanaged
			r.change.release.Decision.Action = state.Hold
		}, Ready, v1alpha2.ExternalChangeReason},
		"made by another program, which failed": {func(r *run) {
			r.change.release.Decision.Action = state.Hold
			r.installed.Newest.Status = v1alpha2.RevisionFailed
		}, Waiting, v1alpha2.UnhealthyReason},
		"not complete": {func(r *run) { r.installed.Newest.Wave = new(0) }, Waiting, v1alpha2.ProgressingReason},
		"made by another program, and not healthy": {func(r *run) {
			r.change.release.Decision.Action = state.Hold
			r.installed.health = missing
		}, Waiting, v1alpha2.UnhealthyReason},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := newTestRun(revision(1, v1alpha2.RevisionDeployed, wanted))
			r.change.release.State.State = state.InSync
			test.prepare(r)

			result := r.summarize(Result{}, Result{})
			g.Expect(result.Outcome).To(Equal(test.outcome))
			g.Expect(result.Reason).To(Equal(test.reason))
		})
	}
}

func TestUnknownHealthIsTheResultOfCare(t *testing.T) {
	r := newTestRun(revision(1, v1alpha2.RevisionDeployed, wanted))
	r.change.release.State.State = state.InSync
	r.installed.health = nil

	NewWithT(t).Expect(r.summarize(retrying, Result{}).text()).To(Equal(
		"v1.0.0 has a problem: connection refused"))
}

// TestHolds: that another revision stays than the spec asks for is named, also while all is healthy.
func TestHolds(t *testing.T) {
	byHelm := func(r *run) {
		r.change.release.Decision.Action, r.change.release.State.State = state.Hold, state.Unmanaged
		r.installed.Record.Description = "Rollback to 1"
	}
	byUser := func(r *run) {
		asksForRevision(r, 1)

		r.change.release.State.State = state.InSync
	}
	asks := func(version string, more func(*run)) func(*run) {
		return func(r *run) {
			more(r)

			r.provider.GetSpec().Version, r.change.goal.version = version, version
		}
	}

	for name, test := range map[string]struct {
		change  func(*run)
		message string
	}{
		"by helm": {
			asks("v1.1.0", byHelm),
			"v1.0.0 is healthy, held at revision 3 by another program (Rollback to 1); v1.1.0 is wanted; to stay with " +
				"v1.0.0, run `capstan rollback infrastructure-aws --keep`; to undo that, run `capstan reconcile " +
				"infrastructure-aws`",
		},
		"by helm, with the same version": {
			asks("v1.0.0", byHelm),
			"v1.0.0 is healthy, held at revision 3 by another program (Rollback to 1); to undo that, " +
				"run `capstan reconcile infrastructure-aws`",
		},
		"by helm, and paused": {
			asks("v1.0.0", func(r *run) { byHelm(r); r.installed.Newest.Paused = true }),
			"v1.0.0 is healthy, held at revision 3 by another program (Rollback to 1); to undo that, " +
				"run `capstan reconcile infrastructure-aws`",
		},
		"by helm, not healthy": {
			asks("v1.0.0", func(r *run) { byHelm(r); r.installed.health = missing }),
			"v1.0.0 is not healthy, held at revision 3 by another program (Rollback to 1): " + absent + "; " +
				"to undo that, run `capstan reconcile infrastructure-aws`",
		},
		"by rollbackTo": {
			asks("v1.1.0", byUser),
			"v1.0.0 is healthy, rolled back to revision 1 by spec.release.rollbackTo; v1.1.0 is wanted; " +
				"to stay with v1.0.0, run `capstan rollback infrastructure-aws --keep`; to try v1.1.0 again, run `capstan " +
				"rollback infrastructure-aws --undo`",
		},
		"by rollbackTo, with a range": {
			func(r *run) {
				byUser(r)
				r.provider.GetSpec().Version, r.provider.GetStatus().DesiredVersion = "~1.1", "v1.1.3"
			},
			"v1.0.0 is healthy, rolled back to revision 1 by spec.release.rollbackTo; v1.1.3 is wanted; " +
				"to stay with v1.0.0, run `capstan rollback infrastructure-aws --keep`; to try v1.1.3 again, run `capstan " +
				"rollback infrastructure-aws --undo`",
		},
		"by rollbackTo, with the same version, and paused": {
			asks("v1.0.0", func(r *run) { byUser(r); r.installed.Newest.Paused = true }),
			"v1.0.0 is paused, rolled back to revision 1 by spec.release.rollbackTo: its Deployments have no replicas; " +
				"to end that, run `capstan rollback infrastructure-aws --undo`",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTestRun(revision(3, v1alpha2.RevisionDeployed, wanted))
			test.change(r)
			NewWithT(t).Expect(r.summarize(Result{}, Result{}).text()).To(Equal(test.message))
		})
	}
}

func TestReleaseThatIsNotAsWanted(t *testing.T) {
	locked := newTestRun(revision(1, v1alpha2.RevisionPendingUpgrade, wanted))
	locked.change.release.State = state.Observed{
		State: state.Locked, Message: "helm is running", Until: now.Add(time.Minute),
	}

	unconfirmed := newTestRun()
	unconfirmed.installed.unconfirmed = untrusted

	for name, test := range map[string]struct {
		r       *run
		outcome Outcome
		message string
	}{
		"another program works on it": {locked, Waiting,
			"v1.0.0 is pending-upgrade as revision 1; v1.1.0 is not applied yet: helm is running; " +
				"revision 1 is pending-upgrade: Upgrade complete"},
		"an unknown program made it": {unconfirmed, Stalled,
			"what is installed is not trusted: " + untrusted.Error()},
		"its records are gone": {newTestRun(), Retrying,
			"release capa-system/infrastructure-aws was deleted just after it was applied; it will be installed again"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			result := test.r.summarize(Result{}, Result{})
			g.Expect(result.Outcome).To(Equal(test.outcome))
			g.Expect(result.text()).To(Equal(test.message))
			g.Expect(result.At).To(Equal(test.r.change.release.State.Until))
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

	returned := newTestRun(rollback, timedOut, revision(1, v1alpha2.RevisionSuperseded, former))
	returned.installed.Record.Description = "Rollback to 1: no node"

	returnedByHelm := copyOf(returned)
	returnedByHelm.installed.Newest.RollbackTo, returnedByHelm.installed.Record = 0, &release.Record{
		AppVersion: "v1.0.0", Description: "back to 1",
	}

	twice := newTestRun(rollback, timedOut, timedOut, revision(1, v1alpha2.RevisionSuperseded, former))
	twice.installed.Record.Description = returned.installed.Record.Description

	settings := copyOf(twice)
	settings.change.goal.version = "v1.0.0"

	sick := copyOf(returned)
	sick.installed.health = missing

	same := copyOf(sick)
	same.installed.Record = &release.Record{
		AppVersion: "v1.0.0", Description: "Rollback to 1: not healthy within 15s: " + absent,
	}

	returning := copyOf(sick)
	returning.installed.Newest.Wave = new(0)

	kept := newTestRun(revision(2, v1alpha2.RevisionFailed, wanted))
	kept.done.refusal = "not rolled back to v1.0.0 (revision 1), because it is too old"

	requested := newTestRun(revision(2, v1alpha2.RevisionFailed, wanted))
	asksForRevision(requested, 1)

	requested.installed.Newest.RollbackTo = 1

	applied := newTestRun(revision(2, v1alpha2.RevisionFailed, wanted))
	applied.done.failure = errors.New("the API server refused Deployment manager")

	for name, test := range map[string]struct {
		r         *run
		decision  state.Decision
		outcome   Outcome
		reason    string
		condition string
		message   string
	}{
		"rolled back, with a retry to come": {
			r:        returned,
			decision: state.Decision{Action: state.Wait, Until: next},
			outcome:  Waiting, reason: v1alpha2.TimedOutWaitingForDeploymentReason,
			message: "v1.0.0 runs; v1.1.0 failed, will be tried again: no node",
		},
		"rolled back by another program": {
			r:        returnedByHelm,
			decision: state.Decision{Action: state.Wait, Until: next},
			outcome:  Waiting, reason: v1alpha2.TimedOutWaitingForDeploymentReason,
			message: "v1.0.0 runs; v1.1.0 failed, will be tried again: back to 1",
		},
		"being rolled back": {
			r:        returning,
			decision: state.Decision{Action: state.Wait, Until: next},
			outcome:  Waiting, reason: v1alpha2.TimedOutWaitingForDeploymentReason,
			message: "rolling back to v1.0.0; v1.1.0 failed, will be tried again: no node; " + absent,
		},
		"rolled back, to what is not healthy": {
			r:        sick,
			decision: state.Decision{Action: state.Wait, Until: next},
			outcome:  Waiting, reason: v1alpha2.TimedOutWaitingForDeploymentReason,
			message: "v1.0.0 is not healthy; v1.1.0 failed, will be tried again: no node; " + absent,
		},
		"rolled back, and nothing has changed yet": {
			r:        same,
			decision: state.Decision{Action: state.Wait, Until: next},
			outcome:  Waiting, reason: v1alpha2.TimedOutWaitingForDeploymentReason,
			message: "v1.0.0 is not healthy; v1.1.0 failed, will be tried again: not healthy within 15s: " + absent,
		},
		"given up": {
			r:        twice,
			decision: state.Decision{Action: state.Stop, Attempts: 2},
			outcome:  Stalled, reason: v1alpha2.TimedOutWaitingForDeploymentReason,
			message: "v1.0.0 runs; v1.1.0 failed twice, given up: no node; to try again, run `capstan reconcile " +
				"infrastructure-aws`",
		},
		"a change of settings, given up": {
			r:        settings,
			decision: state.Decision{Action: state.Stop, Attempts: 2},
			outcome:  Stalled, reason: v1alpha2.TimedOutWaitingForDeploymentReason,
			message: "v1.0.0 runs; a change of its settings failed twice, given up: no node; to try again, run " +
				"`capstan reconcile infrastructure-aws`",
		},
		"given up after one": {
			r:        newTestRun(hopeless),
			decision: state.Decision{Action: state.Stop, Attempts: 1},
			outcome:  Stalled, reason: v1alpha2.UnhealthyReason, condition: v1alpha2.ProviderInstalledCondition,
			message: "v1.1.0 failed, given up: Upgrade complete; to try again, run `capstan reconcile " +
				"infrastructure-aws`",
		},
		"a rollback of the user, given up": {
			r:        requested,
			decision: state.Decision{Action: state.Stop, Attempts: 1},
			outcome:  Stalled, reason: v1alpha2.InstallFailedReason, condition: v1alpha2.ProviderInstalledCondition,
			message: "the rollback to revision 1 failed, given up: Upgrade complete; to try again, run `capstan reconcile " +
				"infrastructure-aws`",
		},
		"not rolled back": {
			r:        newTestRun(revision(2, v1alpha2.RevisionFailed, wanted)),
			decision: state.Decision{Action: state.Wait, Until: next},
			outcome:  Waiting, reason: v1alpha2.InstallFailedReason,
			condition: v1alpha2.ProviderInstalledCondition,
			message:   "v1.1.0 failed, will be tried again: Upgrade complete",
		},
		"not rolled back, because that is refused": {
			r:        kept,
			decision: state.Decision{Action: state.Wait, Until: next},
			outcome:  Waiting, reason: v1alpha2.InstallFailedReason,
			condition: v1alpha2.ProviderInstalledCondition,
			message: "v1.1.0 failed, will be tried again: Upgrade complete; not rolled back to v1.0.0 (revision 1), " +
				"because it is too old",
		},
		"failed just now": {
			r:        applied,
			decision: state.Decision{Action: state.Wait, Until: next},
			outcome:  Waiting, reason: v1alpha2.InstallFailedReason,
			condition: v1alpha2.ProviderInstalledCondition,
			message:   "v1.1.0 failed, will be tried again: the API server refused Deployment manager",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			test.r.change.release.Decision = test.decision

			result := test.r.summarize(Result{}, Result{})
			g.Expect(result.Outcome).To(Equal(test.outcome))
			g.Expect(result.Reason).To(Equal(test.reason))
			g.Expect(result.Condition).To(Equal(test.condition))
			g.Expect(result.text()).To(Equal(test.message))
			g.Expect(result.At).To(Equal(test.decision.Until))
			g.Expect(result.headline()).To(HaveSuffix(result.Failed.headline()))
			g.Expect(test.message).To(HavePrefix(result.headline() + ": "))
		})
	}
}

func TestAttemptThatCanBeMadeAtOnceIsNotStalled(t *testing.T) {
	g := NewWithT(t)
	r := newTestRun(revision(2, v1alpha2.RevisionFailed, wanted))
	r.change.release.Decision.Action = state.Apply

	result := r.summarize(Result{}, Result{})
	g.Expect(result.Outcome).To(Equal(Waiting))
	g.Expect(result.At).To(Equal(now))
}

func TestFailedAttemptWithAProblemOfCare(t *testing.T) {
	g := NewWithT(t)
	r := newTestRun(revision(2, v1alpha2.RevisionFailed, wanted), revision(1, v1alpha2.RevisionSuperseded, former))
	r.change.release.Decision.Action = state.Rollback

	result := r.summarize(retrying, Result{})
	g.Expect(result.Outcome).To(Equal(Retrying))
	g.Expect(result.text()).To(HaveSuffix("; connection refused"))
	g.Expect(result.Failed.headline()).NotTo(ContainSubstring("connection refused"))
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
		r := newTestRun()
		r.provider.GetSpec().Version = c.asked
		NewWithT(t).Expect(r.asksFor(c.installed)).To(Equal(c.want), "%q, %q", c.asked, c.installed)
	}
}

func TestSuspended(t *testing.T) {
	unhealthy := newTestRun(revision(1, v1alpha2.RevisionDeployed, wanted))
	unhealthy.installed.health = missing

	unconfirmed := newTestRun()
	unconfirmed.installed.unconfirmed = untrusted

	asking := func(version string) *run {
		r := newTestRun(revision(1, v1alpha2.RevisionDeployed, wanted))
		r.provider.GetSpec().Version = version

		return r
	}

	byOperator := newTestRun()
	byOperator.Suspended = true

	held := asking("v1.2.0")
	asksForRevision(held, 1)

	held.installed.Newest.RollbackTo = 1

	const unchanged = "nothing is changed while spec.suspend is true"

	for name, test := range map[string]struct {
		r       *run
		outcome Outcome
		message string
	}{
		"nothing installed": {newTestRun(), Idle, "not installed; " + unchanged},
		"healthy": {
			newTestRun(revision(1, v1alpha2.RevisionDeployed, wanted)), Ready, "v1.0.0 is healthy; " + unchanged,
		},
		"not healthy": {
			unhealthy, Idle, "v1.0.0 is not healthy: Deployment manager: does not exist; " + unchanged,
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
			"what is installed is not trusted: " + untrusted.Error() + "; " + unchanged,
		},
		"held at a revision": {
			held, Ready, "v1.0.0 is healthy, rolled back to revision 1 by spec.release.rollbackTo; v1.2.0 is wanted; " +
				unchanged,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			result := test.r.suspended()
			g.Expect(result.Outcome).To(Equal(test.outcome))
			g.Expect(result.Reason).To(Equal(v1alpha2.SuspendedReason))
			g.Expect(result.text()).To(Equal(test.message))
		})
	}
}
