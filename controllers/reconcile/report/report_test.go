package report

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// of returns the report of a reconcile that ended with a result.
func of(in Input, result Result) Report { return Of(in, Summary{Result: result}) }

// condition returns a condition of a report; zero if it does not have it.
func (r Report) condition(name string) metav1.Condition { return find(r.Status.Conditions, name) }

// with returns the input with a condition that the resource has had for some time.
func with(in Input, name, reason, message string, status metav1.ConditionStatus, since time.Duration) Input {
	in.Provider.Status.Conditions = append(in.Provider.Status.Conditions, metav1.Condition{
		Type: name, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now.Add(-since)),
	})

	return in
}

func TestOutcomesAreShown(t *testing.T) {
	for name, test := range map[string]struct {
		result      Result
		ready       metav1.ConditionStatus
		reconciling bool
		stalled     bool
		after       time.Duration
		retry       string
	}{
		"ready": {result: Result{Outcome: Ready}, ready: metav1.ConditionTrue},
		"ready, with work to follow": {
			result: Result{Outcome: Ready, At: now.Add(time.Hour)}, ready: metav1.ConditionTrue, after: time.Hour,
		},
		"ready, with work that is due": {
			result: Result{Outcome: Ready, At: now.Add(-time.Hour)}, ready: metav1.ConditionTrue, after: time.Millisecond,
		},
		"waiting for an event": {result: Result{Outcome: Waiting}, ready: metav1.ConditionFalse, reconciling: true},
		"waiting for a time": {
			result: Result{Outcome: Waiting, At: now.Add(time.Hour)},
			ready:  metav1.ConditionFalse, reconciling: true, after: time.Hour,
		},
		"stalled": {
			result: Result{Outcome: Stalled}, ready: metav1.ConditionFalse, stalled: true, after: MinRetry,
		},
		"retrying": {
			result: Result{Outcome: Retrying, Message: "connection\nreset"},
			ready:  metav1.ConditionFalse, reconciling: true, retry: "connection reset",
		},
		"idle": {result: Result{Outcome: Idle}, ready: metav1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			test.result.Reason = "Some"

			report := of(newInput(), test.result)
			g.Expect(report.After).To(Equal(test.after))
			g.Expect(report.Retry).To(Equal(test.retry))
			g.Expect(report.condition(v1alpha2.ReadyCondition)).To(And(
				HaveField("Status", test.ready), HaveField("Reason", "Some"), HaveField("ObservedGeneration", int64(2))))
			g.Expect(report.condition(v1alpha2.ReconcilingCondition).Status == metav1.ConditionTrue).To(
				Equal(test.reconciling))
			g.Expect(report.condition(v1alpha2.StalledCondition).Status == metav1.ConditionTrue).To(Equal(test.stalled))
			g.Expect(report.Status.ObservedGeneration).To(BeEquivalentTo(2))
		})
	}
}

func TestReadyNamesWhatIsAppliedOnce(t *testing.T) {
	g := NewWithT(t)
	in := newInput(revision(1, v1alpha2.RevisionDeployed, wanted))
	in.Change.State.State = state.InSync

	g.Expect(Summarize(in, Result{}, Result{}).Message).To(Equal("v1.0.0 is healthy"))

	in.Installed.Health.Kept = "container manager of Deployment a/b stays at the image b:v0.9.0 instead of b:v1.0.0"
	g.Expect(Summarize(in, Result{}, Result{})).To(And(HaveField("Outcome", Ready), HaveField("Message", And(
		HavePrefix("v1.0.0 is healthy; container manager of Deployment a/b stays"),
		ContainSubstring("capstan.dev/update-policy is Once")))))
}

func TestReadyNamesWhatFinalizersHold(t *testing.T) {
	in := newInput(revision(1, v1alpha2.RevisionDeployed, wanted))
	in.Change.State.State = state.InSync
	in.Installed.Undeleted = "ConfigMap a/old is being deleted, but its finalizers hold it: example.com/hold"

	NewWithT(t).Expect(Summarize(in, Result{}, Result{})).To(And(HaveField("Outcome", Ready), HaveField("Message",
		"v1.0.0 is healthy; no longer part of the release: ConfigMap a/old is being "+
			"deleted, but its finalizers hold it: example.com/hold; the program that added a finalizer has to remove it")))
}

func TestUnhealthyManagerNamesDoubtfulFlags(t *testing.T) {
	in := newInput(revision(1, v1alpha2.RevisionDeployed, wanted))
	in.Change.State.State = state.InSync
	in.Change.Flags = []Flag{
		{Deployment: "manager", Warning: "spec.manager.verbosity sets --v"}, {Deployment: "other", Warning: "not about it"},
	}

	g := NewWithT(t)
	g.Expect(Summarize(in, Result{}, Result{}).Message).To(HaveSuffix("is healthy"))

	in.Installed.Health = Health{Checked: true, Message: "Deployment capa-system/manager: Replicas: 0/1"}
	g.Expect(Summarize(in, Result{}, Result{})).To(And(HaveField("Outcome", Waiting), HaveField("Message",
		"applying v1.0.0: Deployment capa-system/manager: Replicas: 0/1; spec.manager.verbosity sets --v")))
}

func TestConditionIsAsOldAsWhatItSays(t *testing.T) {
	g := NewWithT(t)
	in := with(newInput(), v1alpha2.ReadyCondition, "Some", "two lines", metav1.ConditionFalse, time.Hour)

	same := of(in, Result{Outcome: Idle, Reason: "Some", Message: "two\nlines"})
	g.Expect(same.condition(v1alpha2.ReadyCondition).LastTransitionTime.Time).To(Equal(now.Add(-time.Hour)))

	changed := of(in, Result{Outcome: Idle, Reason: "Some", Message: "other lines"})
	g.Expect(changed.condition(v1alpha2.ReadyCondition).LastTransitionTime.Time).To(Equal(now))
	g.Expect(in.Provider.Status.Conditions).To(HaveLen(1), "the input stays as it is")
}

func TestMessagesAreBounded(t *testing.T) {
	g := NewWithT(t)

	long := of(newInput(), Result{Outcome: Idle, Reason: "Some", Message: strings.Repeat("€", 32768)})
	message := long.condition(v1alpha2.ReadyCondition).Message
	g.Expect(message).To(HaveSuffix("€ …"))
	g.Expect(len(message)).To(And(BeNumerically("<=", maxReady), BeNumerically(">", maxReady-4)))
	g.Expect(long.Events).To(ConsistOf(HaveField("Note", HaveSuffix("€ …"))))
	g.Expect(len(long.Events[0].Note)).To(And(BeNumerically("<=", 1024), BeNumerically(">", 1016)))
}

// TestCausesAreCutFirst: the verdict and the remedy of a long message stay.
func TestCausesAreCutFirst(t *testing.T) {
	g := NewWithT(t)
	said := message{
		runs: "v1.0.0 runs", wanted: "v1.1.0 failed", causes: []string{strings.Repeat("no node ", 1000)}, remedy: "run `a`",
	}

	made := of(newInput(), said.of(Result{Outcome: Stalled, Reason: "Some"}))
	for text, limit := range map[string]int{
		made.condition(v1alpha2.ReadyCondition).Message: maxReady, made.Events[0].Note: maxNote,
	} {
		g.Expect(text).To(And(HavePrefix("v1.0.0 runs; v1.1.0 failed: no node"), HaveSuffix(" …; run `a`")))
		g.Expect(len(text)).To(BeNumerically("~", limit, 10))
	}
}

// TestCauseIsOnceInAReport: conditions that follow from Ready leave the cause to it.
func TestCauseIsOnceInAReport(t *testing.T) {
	failed := revision(2, v1alpha2.RevisionFailed, wanted)
	in := newInput(failed)
	in.Provider.Status.InstalledVersion = new("v1.0.0")
	in.Change.Decision.Action = state.Stop
	in.Installed.Record.Description = "no node"

	said := map[string]string{}
	for _, c := range Of(in, Summarize(in, Result{}, Result{})).Status.Conditions {
		said[c.Type] = c.Message
	}

	const short = "v1.1.0 failed, given up"

	NewWithT(t).Expect(said).To(Equal(map[string]string{
		v1alpha2.ReadyCondition: short + ": no node; to try again, run `capstan upgrade apply infrastructure-aws:v1.1.0`",

		v1alpha2.StalledCondition:           short,
		v1alpha2.ProviderInstalledCondition: short,
		v1alpha2.ProviderUpgradedCondition:  short,
	}))
}

func TestStalledResourceComesBack(t *testing.T) {
	for name, test := range map[string]struct {
		at      time.Time
		existed time.Duration
		after   time.Duration
	}{
		"just now":        {existed: 0, after: 5 * time.Second},
		"for a minute":    {existed: time.Minute, after: time.Minute},
		"for a day":       {existed: 24 * time.Hour, after: 10 * time.Minute},
		"at a known time": {at: now.Add(time.Hour), existed: time.Minute, after: time.Hour},
		"at a past time":  {at: now.Add(-time.Hour), after: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			in := with(newInput(), v1alpha2.ReadyCondition, "Some", "wrong", metav1.ConditionFalse, test.existed)
			result := Result{Outcome: Stalled, Reason: "Some", Message: "wrong", At: test.at}
			NewWithT(t).Expect(of(in, result).After).To(Equal(test.after))
		})
	}
}

func TestRemoteClusterIsLookedAtAgain(t *testing.T) {
	waiting := Result{Outcome: Waiting, Reason: "Some", Message: "waiting"}
	ready := func(at time.Time) Result { return Result{Outcome: Ready, Reason: "Some", At: at} }

	for name, test := range map[string]struct {
		result Result
		age    time.Duration
		after  time.Duration
	}{
		"while nothing happens":        {ready(time.Time{}), 0, 5 * time.Minute},
		"before the work that follows": {ready(now.Add(time.Hour)), 0, 5 * time.Minute},
		"for the work that follows":    {ready(now.Add(time.Second)), 0, time.Second},
		"while something happens":      {waiting, time.Second, time.Second},
		"less often":                   {waiting, 10 * time.Minute, time.Minute},
		"as often as usual":            {waiting, 5 * time.Hour, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInput()
			in.RemoteInterval = 5 * time.Minute
			in = with(in, v1alpha2.ReadyCondition, test.result.Reason, test.result.Message, metav1.ConditionFalse, test.age)

			NewWithT(t).Expect(of(in, test.result).After).To(Equal(test.after))
		})
	}
}

func TestWaitsThatAreLimited(t *testing.T) {
	limited := Result{Outcome: Waiting, Reason: "Some", Message: "waiting", Limited: true}
	unlimited := limited
	unlimited.Limited = false
	retrying := limited
	retrying.Outcome = Retrying

	waits := func(reason string, since time.Duration) Input {
		return with(newInput(), v1alpha2.ReconcilingCondition, reason, "waited", metav1.ConditionTrue, since)
	}

	for name, test := range map[string]struct {
		result  Result
		in      Input
		overdue bool
		after   time.Duration
	}{
		"first":                          {limited, newInput(), false, 5*time.Minute + time.Second},
		"for a while":                    {limited, waits("Some", time.Minute), false, 4*time.Minute + time.Second},
		"too long":                       {limited, waits("Some", time.Hour), true, 0},
		"for another reason":             {limited, waits("Other", time.Hour), false, 5*time.Minute + time.Second},
		"retrying too long":              {retrying, waits("Some", time.Hour), true, 0},
		"for the pods of a new revision": {unlimited, waits("Some", time.Hour), false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			report := of(test.in, test.result)
			g.Expect(report.After).To(Equal(test.after))
			g.Expect(report.condition(v1alpha2.StalledCondition).Type != "").To(Equal(test.overdue))
			g.Expect(report.condition(v1alpha2.ReconcilingCondition).Type != "").To(Equal(!test.overdue))

			if !test.overdue {
				return
			}

			g.Expect(report.condition(v1alpha2.ReadyCondition).Message).To(Equal(
				"waiting; this takes longer than spec.release.timeout (5m0s)"))
			g.Expect(report.condition(v1alpha2.StalledCondition).LastTransitionTime.Time).To(Equal(now.Add(-time.Hour)),
				"since the wait began")
			g.Expect(report.Events).To(ConsistOf(HaveField("Type", "Warning")))

			test.in.Provider.Status = report.Status
			again := of(test.in, test.result)
			g.Expect(again.Status).To(Equal(report.Status), "it stays overdue")
			g.Expect(again.Events).To(BeEmpty())
		})
	}
}

func TestStoppedChangeKeepsProviderInstalled(t *testing.T) {
	g := NewWithT(t)
	result := refused
	result.Condition = v1alpha2.ProviderInstalledCondition

	installed := of(newInput(revision(3, v1alpha2.RevisionDeployed, former)), result)
	g.Expect(installed.condition(v1alpha2.ProviderInstalledCondition).Status).To(Equal(metav1.ConditionTrue))
	g.Expect(installed.condition(v1alpha2.ReadyCondition).Status).To(Equal(metav1.ConditionFalse))

	absent := of(newInput(), result)
	g.Expect(absent.condition(v1alpha2.ProviderInstalledCondition).Reason).To(Equal(v1alpha2.VersionNotFoundReason))

	unread := with(newInput(), v1alpha2.ProviderInstalledCondition, "Some", "it is", metav1.ConditionTrue, time.Hour)
	unread.Installed.Observed = false
	g.Expect(of(unread, result).condition(v1alpha2.ProviderInstalledCondition).Message).To(Equal("it is"),
		"as far as is known")
}

// TestRefusedChangeOfCRDsIsWithdrawn: the condition about it lasts as long as the change is asked for.
func TestRefusedChangeOfCRDsIsWithdrawn(t *testing.T) {
	refused := func(status metav1.ConditionStatus) Input {
		in := newInput(revision(1, v1alpha2.RevisionDeployed, wanted))
		return with(in, v1alpha2.CRDsSafeCondition, v1alpha2.UnsafeCRDsReason, "refused", status, 0)
	}

	for outcome, kept := range map[Outcome]bool{Waiting: true, Stalled: true, Ready: false} {
		report := of(refused(metav1.ConditionFalse), Result{Outcome: outcome, Reason: v1alpha2.HealthyReason})
		NewWithT(t).Expect(report.condition(v1alpha2.CRDsSafeCondition).Type != "").To(Equal(kept), "outcome %d", outcome)
	}

	report := of(refused(metav1.ConditionTrue), Result{Outcome: Ready, Reason: v1alpha2.HealthyReason})
	NewWithT(t).Expect(report.condition(v1alpha2.CRDsSafeCondition).Status).To(Equal(metav1.ConditionTrue))
}

func TestPausedIsWhatTheNewestRevisionSays(t *testing.T) {
	const deployed, failed = v1alpha2.RevisionDeployed, v1alpha2.RevisionFailed

	for name, test := range map[string]struct {
		status         v1alpha2.RevisionStatus
		marked, paused bool // the revision's label, and its objects
		before         bool
		want           bool
	}{
		"a paused revision":              {deployed, true, true, false, true},
		"... without Deployments":        {deployed, true, false, false, true},
		"... of another program":         {deployed, false, true, false, true},
		"... that failed":                {failed, true, true, false, false},
		"... that failed, paused before": {failed, true, true, true, true},
		"a revision that runs":           {deployed, false, false, true, false},
		"... and failed":                 {failed, false, false, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInput(state.Revision{
				ReleaseRevision: v1alpha2.ReleaseRevision{Number: 2, Status: test.status, Paused: test.marked},
				Origin:          2,
			})
			in.Installed.Record.Paused = test.paused

			if test.before {
				in = with(in, v1alpha2.PausedCondition, v1alpha2.PausedReason, "before", metav1.ConditionTrue, 0)
			}

			paused := of(in, Result{Outcome: Ready}).condition(v1alpha2.PausedCondition)
			NewWithT(t).Expect(paused.Status == metav1.ConditionTrue).To(Equal(test.want))
		})
	}
}

// TestPausedIsTrueOnlyWithoutPods: core changes to another contract only while all providers are paused.
func TestPausedIsTrueOnlyWithoutPods(t *testing.T) {
	for name, test := range map[string]struct {
		health Health
		want   metav1.ConditionStatus
	}{
		"without pods":  {Health{Checked: true, Healthy: true}, metav1.ConditionTrue},
		"scaled again":  {Health{Checked: true, Running: true}, ""},
		"not looked at": {Health{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInput(state.Revision{
				ReleaseRevision: v1alpha2.ReleaseRevision{Number: 2, Status: v1alpha2.RevisionDeployed, Paused: true},
				Origin:          2,
			})
			in.Installed.Health = test.health

			paused := of(in, Result{Outcome: Ready}).condition(v1alpha2.PausedCondition)
			NewWithT(t).Expect(paused.Status).To(Equal(test.want))
		})
	}
}

func TestContractIsThatOfTheNewestRevision(t *testing.T) {
	g := NewWithT(t)
	in := newInput(revision(2, v1alpha2.RevisionDeployed, former))
	in.Provider.Status.Contract = new("v1beta2")
	in.Installed.Identified = true
	in.Installed.Record.Contract = "v1beta1"
	g.Expect(of(in, refused).Status.Contract).To(HaveValue(Equal("v1beta1")))

	in.Installed.Record.Contract = ""
	g.Expect(of(in, refused).Status.Contract).To(BeNil(), "a chart of another program")

	lost := newInput()
	lost.Provider.Status.Contract = new("v1beta2")
	g.Expect(of(lost, refused).Status.Contract).To(HaveValue(Equal("v1beta2")), "the records may be lost")

	lost.Uninstalled = true
	g.Expect(of(lost, refused).Status.Contract).To(BeNil(), "uninstalled")
}

func TestSecondResourceDoesNotClaimTheRelease(t *testing.T) {
	g := NewWithT(t)
	in := newInput(revision(1, v1alpha2.RevisionDeployed, wanted))
	g.Expect(of(in, refused).Status.Release).To(BeNil())

	in.Installed.Identified = true
	g.Expect(of(in, refused).Status.Release).To(HaveField("Revision", 1))
}

func TestUninstalledByOthersIsRemembered(t *testing.T) {
	g := NewWithT(t)
	in := newInput(revision(1, v1alpha2.RevisionUninstalled, wanted))
	in.Change.Decision.Action = state.Hold
	in.Provider.Status.Release = &v1alpha2.ReleaseStatus{Name: "infrastructure-aws", Status: "deployed"}
	in.Provider.Status.InstalledVersion = new("v1.0.0")
	in = with(in, v1alpha2.DriftedCondition, "Some", "differs", metav1.ConditionTrue, 0)

	report := of(in, UninstalledByOthers(in))
	g.Expect(report.Status.InstalledVersion).To(BeNil())
	g.Expect(report.Status.Release).To(HaveField("Status", v1alpha2.RevisionUninstalled))
	g.Expect(report.condition(v1alpha2.DriftedCondition).Type).To(BeEmpty())
	g.Expect(report.condition(v1alpha2.ReadyCondition).Message).To(ContainSubstring("another program uninstalled release"))
}

func TestInstallationThatIsAskedForAgainIsNotHeld(t *testing.T) {
	g := NewWithT(t)
	in := Input{Installed: Installed{Observed: true}}
	in.Provider.Status.Release = &v1alpha2.ReleaseStatus{Name: "aws"}
	in.Change.State.State = state.Absent
	in.Change.Decision.Action = state.Apply
	stopped := Summary{Result: Result{Outcome: Retrying, Reason: v1alpha2.InstallFailedReason, Message: "a timeout"}}

	g.Expect(Of(in, stopped).Status.Release).To(BeNil())

	in.Installed.Observed = false
	g.Expect(Of(in, stopped).Status.Release).NotTo(BeNil(), "nothing was seen")

	in.Installed.Observed, in.Change.Decision.Action = true, state.Hold
	g.Expect(Of(in, stopped).Status.Release).NotTo(BeNil(), "it is respected")
}

func TestDriftIsNewsOnce(t *testing.T) {
	g := NewWithT(t)
	in := newInput(revision(1, v1alpha2.RevisionDeployed, wanted))
	in.Provider.Drift = v1alpha2.DriftCorrect
	in.Installed.Drift = Drift{Compared: true, Left: []string{"a", "b", "c", "d", "e", "f", "g"}}

	first := of(in, Result{Outcome: Ready})
	g.Expect(first.Drifted).To(Equal(7))
	g.Expect(first.Events).To(ContainElement(HaveField("Note", "a; b; c; d; e (and 2 more)")))
	g.Expect(first.condition(v1alpha2.DriftedCondition).Reason).To(Equal(v1alpha2.DriftNotCorrectedReason))

	in.Provider.Status = first.Status
	again := of(in, Result{Outcome: Ready})
	g.Expect(again.Drifted).To(BeZero())
	g.Expect(again.Events).To(BeEmpty())

	in.Provider.Drift = v1alpha2.DriftWarn
	g.Expect(of(in, Result{Outcome: Ready}).condition(v1alpha2.DriftedCondition).Reason).To(
		Equal(v1alpha2.DriftDetectedReason))

	in.Installed.Drift.Left = nil
	g.Expect(of(in, Result{Outcome: Ready}).condition(v1alpha2.DriftedCondition).Type).To(BeEmpty())

	in.Installed.Drift.Late = "Deployment objects are not watched"
	g.Expect(of(in, Result{Outcome: Ready}).condition(v1alpha2.DriftedCondition)).To(And(
		HaveField("Status", metav1.ConditionUnknown), HaveField("Message", in.Installed.Drift.Late)))

	in.Installed.Drift = Drift{}
	g.Expect(of(in, Result{Outcome: Ready}).condition(v1alpha2.DriftedCondition).Type).NotTo(BeEmpty(), "not compared")
}

func TestInputsThatCannotBeUsed(t *testing.T) {
	g := NewWithT(t)
	in := newInput(revision(1, v1alpha2.RevisionDeployed, wanted))
	in.Change.InputsProblem = Result{Outcome: Stalled, Reason: v1alpha2.SecretNotFoundReason, Message: "no Secret"}

	report := of(in, Result{Outcome: Ready, At: now.Add(time.Hour)})
	g.Expect(report.condition(v1alpha2.InputsUnavailableCondition).Message).To(Equal(
		"no Secret; what is installed stays as it is"))
	g.Expect(report.After).To(Equal(MinRetry), "the Secret may not be watched")

	in.Provider.Status = report.Status
	in.Change = Progress{Planned: true}
	g.Expect(of(in, Result{Outcome: Ready}).condition(v1alpha2.InputsUnavailableCondition).Type).To(BeEmpty())
}

func TestPendingChangesStayWhileInputsAreUnknown(t *testing.T) {
	g := NewWithT(t)
	in := newInput(revision(1, v1alpha2.RevisionDeployed, wanted))
	in.Change.Decision.Action = state.None
	in = with(in, v1alpha2.ChangesPendingCondition, v1alpha2.InputsChangedReason, "the Secret", metav1.ConditionTrue, 0)

	in.Change.InputsProblem = Result{Outcome: Stalled, Reason: v1alpha2.SecretNotFoundReason, Message: "no Secret"}
	g.Expect(of(in, Result{Outcome: Ready}).condition(v1alpha2.ChangesPendingCondition).Message).To(Equal("the Secret"))

	in.Change.InputsProblem = Result{}
	g.Expect(of(in, Result{Outcome: Ready}).condition(v1alpha2.ChangesPendingCondition).Type).To(BeEmpty())
}

func TestAutomaticUpgradeThatWasGivenUpIsNewsOnce(t *testing.T) {
	g := NewWithT(t)
	in := newInput(revision(3, v1alpha2.RevisionDeployed, former))
	in.Installed.Identified = true
	in.Automatic.Last = &v1alpha2.AutomaticUpgrade{Version: "v1.0.1", Revision: 2, Result: v1alpha2.UpgradeFailed}
	g.Expect(of(in, Result{Outcome: Idle}).Events).NotTo(ContainElement(HaveField("Action", "Upgrade")),
		"it is not rolled back yet")

	in.Automatic.Last.Message = "not healthy"
	first := of(in, Result{Outcome: Idle})
	g.Expect(first.Events).To(ContainElement(HaveField("Note", HavePrefix(
		"v1.0.1 failed, given up until a newer version exists: not healthy; to try it again, change the annotation "))))

	in.Provider.Status = first.Status
	g.Expect(of(in, Result{Outcome: Idle}).Events).To(BeEmpty())

	in.Automatic.Last = &v1alpha2.AutomaticUpgrade{Version: "v1.0.2", Revision: 4, Message: "not healthy"}
	g.Expect(of(in, Result{Outcome: Idle}).Events).To(ContainElement(HaveField("Note", HavePrefix("v1.0.2 failed"))))

	in.Automatic.Last = nil
	g.Expect(of(in, Result{Outcome: Idle}).Status.AutomaticUpgrade).To(BeNil())
}

func TestReadyIsNews(t *testing.T) {
	const progressing = v1alpha2.ProgressingReason

	type ready struct {
		status          metav1.ConditionStatus
		reason, message string
	}

	ofVersion := func(version, reason, cause string) Result {
		return message{runs: "applying " + version, causes: []string{cause}}.of(Result{Outcome: Waiting, Reason: reason})
	}

	for name, c := range map[string]struct {
		before ready
		result Result
		want   string // type, reason and note of the event; empty for none
	}{
		"becomes ready": {
			ready{"False", progressing, "waiting"}, Result{Outcome: Ready, Reason: "Succeeded", Message: "installed"},
			"Normal Succeeded installed",
		},
		"stays ready": {
			ready{"True", "Succeeded", "ok"}, Result{Outcome: Ready, Reason: "Succeeded", Message: "ok"}, "",
		},
		"begins to progress": {ready{}, Result{Outcome: Waiting, Reason: progressing, Message: "waiting"}, ""},
		"progresses after a wait": {
			ready{"False", "Waiting", "for core"}, Result{Outcome: Waiting, Reason: progressing, Message: "waiting"}, "",
		},
		"says more while it progresses": {
			ready{"False", progressing, "applying v1.0.0"}, ofVersion("v1.0.0", progressing, "ImagePullBackOff"), "",
		},
		"is still not healthy": {
			ready{"False", v1alpha2.UnhealthyReason, "applying v1.0.0"},
			ofVersion("v1.0.0", v1alpha2.UnhealthyReason, "ImagePullBackOff"), "",
		},
		"applies another version": {
			ready{"False", progressing, "applying v1.0.0"}, ofVersion("v1.1.0", progressing, "no node"),
			"Normal Progressing applying v1.1.0: no node",
		},
		"is refused for another cause": {
			ready{"False", "Wrong", "no such version"}, Result{Outcome: Stalled, Reason: "Wrong", Message: "no such key"},
			"Warning Wrong no such key",
		},
		"is no longer ready": {
			ready{"True", "Succeeded", "ok"}, Result{Outcome: Waiting, Reason: progressing, Message: "a pod crashes"},
			"Normal Progressing a pod crashes",
		},
		"waits for core": {
			ready{}, Result{Outcome: Waiting, Reason: "Waiting", Message: "for core"}, "Normal Waiting for core",
		},
		"is stalled": {ready{}, Result{Outcome: Stalled, Reason: "Wrong", Message: "no such"}, "Warning Wrong no such"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := newInput()

			if c.before.reason != "" {
				in = with(in, v1alpha2.ReadyCondition, c.before.reason, c.before.message, c.before.status, time.Hour)
			}

			if c.before.status == metav1.ConditionFalse {
				in = with(in, v1alpha2.ReconcilingCondition, c.before.reason, c.before.message, metav1.ConditionTrue, time.Hour)
			}

			report := of(in, c.result)
			if c.want == "" {
				g.Expect(report.Events).To(BeEmpty())
				return
			}

			g.Expect(report.Events).To(HaveLen(1))
			e := report.Events[0]
			g.Expect(strings.Join([]string{e.Type, e.Reason, e.Note}, " ")).To(Equal(c.want))
		})
	}
}

// TestFailedAttemptsAreNews: each attempt that fails is one warning, whatever becomes of its rollback.
func TestFailedAttemptsAreNews(t *testing.T) {
	g := NewWithT(t)
	failed, again := revision(2, v1alpha2.RevisionFailed, wanted), revision(4, v1alpha2.RevisionFailed, wanted)
	rollback := revision(3, v1alpha2.RevisionDeployed, former)
	rollback.RollbackTo = 1

	var (
		status v1alpha2.ProviderStatus
		events []string
	)

	reconcile := func(action state.Action, health Health, revisions ...state.Revision) {
		in := newInput(revisions...)
		in.Installed.Record.Description, in.Installed.Health = "no node", health
		in.Provider.Status, in.Change.Decision.Action = status, action

		if action == state.Wait {
			in.Change.Decision.Until = now.Add(time.Minute)
		}

		if action == state.None {
			in.Change.State.State = state.InSync
			in.Installed.Record.AppVersion = "v1.1.0"
		}

		made := Of(in, Summarize(in, Result{}, Result{}))
		status = made.Status

		for _, e := range made.Events {
			events = append(events, e.Type+" "+e.Note)
		}
	}

	healthy := Health{Checked: true, Healthy: true}
	deployed := revision(4, v1alpha2.RevisionDeployed, wanted)

	reconcile(state.Wait, missing, rollback, failed)
	reconcile(state.Wait, healthy, rollback, failed)
	reconcile(state.None, missing, deployed, rollback, failed)
	g.Expect(events).To(ConsistOf(HavePrefix(
		"Warning v1.0.0 is not healthy; v1.1.0 failed, will be tried again: no node")))

	events = nil

	rollback.Number = 5
	reconcile(state.Stop, missing, rollback, again, failed)
	reconcile(state.Stop, healthy, rollback, again, failed)
	g.Expect(events).To(ConsistOf(HavePrefix(
		"Warning v1.0.0 is not healthy; v1.1.0 failed twice, given up: no node")))
}

func TestWarningsShareAnEvent(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Ignored(nil)).To(BeEmpty())
	g.Expect(Ignored([]string{"one is ignored", "two is ignored"})).To(ConsistOf(
		And(HaveField("Note", "one is ignored; two is ignored"), HaveField("Type", "Warning"))))
}

func TestAdoptedObjectsAreNamed(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Adopted(nil)).To(BeEmpty())

	keys := []object.Key{{Name: "b"}, {Name: "a"}}
	keys[0].Kind, keys[1].Kind = "Role", "Role"
	g.Expect(Adopted(keys)).To(ConsistOf(HaveField("Note", "Adopted 2 objects that existed: Role a, Role b")))
}

func TestOneAdoptedObjectIsCountedAsOne(t *testing.T) {
	in := newInput(state.Revision{
		ReleaseRevision: v1alpha2.ReleaseRevision{Number: 1, Status: v1alpha2.RevisionDeployed, Adopted: 1},
		Origin:          1,
	})

	installed := of(in, Result{Outcome: Ready}).condition(v1alpha2.ProviderInstalledCondition)
	NewWithT(t).Expect(installed.Message).To(HaveSuffix("; it adopted 1 existing object"))
}

func TestCorrectionNamesItsObject(t *testing.T) {
	g := NewWithT(t)
	role := object.Key{Name: "a"}
	g.Expect(Corrected(role, true, "Role a is missing")).To(ConsistOf(And(
		HaveField("Action", "Create"), HaveField("Related", role), HaveField("Note", "Corrected drift: Role a is missing"))))
	g.Expect(Corrected(role, false, "Role a differs")).To(ConsistOf(HaveField("Action", "Patch")))
}

func TestRemovingNamesWhatIsLeft(t *testing.T) {
	g := NewWithT(t)

	g.Expect(Removing("CoreProvider a/b", nil).Message).To(Equal(
		"CoreProvider a/b has no finalizers left, so the API server is deleting it"))
	g.Expect(Removing("CoreProvider a/b", []string{"foregroundDeletion", "example.com/c"}).Message).To(Equal(
		"Capstan has finished removing the provider; CoreProvider a/b is deleted once the programs that added its other " +
			"finalizers remove them: foregroundDeletion, example.com/c"))
}
