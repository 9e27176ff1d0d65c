package provider

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/clusters"
	"github.com/capstan-project/capstan/controllers/consistency"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/values"
)

// of returns the report of a reconcile that ended with a result.
func of(r *run, result Result) Report { return r.report(Summary{Result: result}, now) }

// condition returns a condition of a report; zero if it does not have it.
func (r Report) condition(name string) metav1.Condition {
	return v1alpha2.FindCondition(r.Status.Conditions, name)
}

// say matches a result with a message.
func say(message any) OmegaMatcher {
	matcher, is := message.(OmegaMatcher)
	if !is {
		matcher = Equal(message)
	}

	return WithTransform(func(r Result) string { return r.text() }, matcher)
}

// with returns the input with a condition that the resource has had for some time.
func with(r *run, name, reason, message string, status metav1.ConditionStatus, since time.Duration) *run {
	r.provider.GetStatus().Conditions = append(r.provider.GetStatus().Conditions, metav1.Condition{
		Type: name, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now.Add(-since)),
	})

	return r
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
			result: Result{Outcome: Retrying, message: because("connection\nreset")},
			ready:  metav1.ConditionFalse, reconciling: true, retry: "connection reset",
		},
		"idle": {result: Result{Outcome: Idle}, ready: metav1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			test.result.Reason = "Some"

			report := of(newTestRun(), test.result)
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
	r := newTestRun(revision(1, v1alpha2.RevisionDeployed, wanted))
	r.change.release.State.State = state.InSync

	g.Expect(r.summarize(Result{}, Result{}).text()).To(Equal("v1.0.0 is healthy"))

	r.installed.replicas.kept = []string{
		"container manager of Deployment a/b stays at the image b:v0.9.0 instead of b:v1.0.0",
	}
	g.Expect(r.summarize(Result{}, Result{}).Result).To(And(HaveField("Outcome", Ready), say(And(
		HavePrefix("v1.0.0 is healthy; container manager of Deployment a/b stays"),
		ContainSubstring("capstan.dev/update-policy is Once")))))
}

func TestReadyNamesWhatFinalizersHold(t *testing.T) {
	r := newTestRun(revision(1, v1alpha2.RevisionDeployed, wanted))
	r.change.release.State.State = state.InSync
	r.done.undeleted = "ConfigMap a/old is being deleted, but its finalizers hold it: example.com/hold"

	NewWithT(t).Expect(r.summarize(Result{}, Result{}).Result).To(And(HaveField("Outcome", Ready), say(
		"v1.0.0 is healthy; no longer part of the release: ConfigMap a/old is being "+
			"deleted, but its finalizers hold it: example.com/hold; the program that added a finalizer has to remove it")))
}

func TestUnhealthyManagerNamesDoubtfulFlags(t *testing.T) {
	r := newTestRun(revision(1, v1alpha2.RevisionDeployed, wanted))
	r.change.release.State.State = state.InSync
	doubtful := values.Flag{Name: "v", Field: "spec.manager.verbosity", Deployment: "manager", Container: "manager"}
	r.change.plan.Warnings.Flags = []values.Flag{doubtful, {Name: "v", Field: "not about it", Deployment: "other"}}

	g := NewWithT(t)
	g.Expect(r.summarize(Result{}, Result{}).text()).To(HaveSuffix("is healthy"))

	manager := unhealthy("Replicas: 0/1", status.InProgressStatus)
	r.installed.health = &health.Report{Objects: []health.ObjectHealth{manager}}
	g.Expect(r.summarize(Result{}, Result{}).Result).To(And(HaveField("Outcome", Waiting), say(
		"applying v1.0.0: Deployment manager: Replicas: 0/1; "+doubtful.String())))

	crashes := "CrashLoopBackOff: exited with code 2 (Error) (pod manager-5d7-x2)"
	manager.Message, manager.NamesPod = crashes, true
	r.installed.health = &health.Report{Objects: []health.ObjectHealth{manager}}
	g.Expect(r.summarize(Result{}, Result{}).Result).To(say("applying v1.0.0: " + crashes + "; " + doubtful.String()))
}

func TestConditionIsAsOldAsWhatItSays(t *testing.T) {
	g := NewWithT(t)
	r := with(newTestRun(), v1alpha2.ReadyCondition, "Some", "two lines", metav1.ConditionFalse, time.Hour)

	same := of(r, Result{Outcome: Idle, Reason: "Some", message: because("two\nlines")})
	g.Expect(same.condition(v1alpha2.ReadyCondition).LastTransitionTime.Time).To(Equal(now.Add(-time.Hour)))

	changed := of(r, Result{Outcome: Idle, Reason: "Some", message: because("other lines")})
	g.Expect(changed.condition(v1alpha2.ReadyCondition).LastTransitionTime.Time).To(Equal(now))
	g.Expect(r.provider.GetStatus().Conditions).To(HaveLen(1), "the input stays as it is")
}

func TestMessagesAreBounded(t *testing.T) {
	g := NewWithT(t)

	long := of(newTestRun(), Result{Outcome: Idle, Reason: "Some", message: because(strings.Repeat("€", 32768))})
	message := long.condition(v1alpha2.ReadyCondition).Message
	g.Expect(message).To(HaveSuffix("€ …"))
	g.Expect(len(message)).To(And(BeNumerically("<=", maxReady), BeNumerically(">", maxReady-4)))
	g.Expect(long.Events).To(ConsistOf(HaveField("Note", HaveSuffix("€ …"))))
	g.Expect(len(long.Events[0].Note)).To(And(BeNumerically("<=", 1024), BeNumerically(">", 1016)))
}

// TestPanicIsReported: a reconcile that panics says so in the conditions, and leaves the rest of the status as it was.
func TestPanicIsReported(t *testing.T) {
	g := NewWithT(t)
	live := connect(t)

	p := aws()
	p.Namespace, p.ResourceVersion = "default", ""
	g.Expect(live.Create(t.Context(), p)).To(Succeed())

	p.Status.ObservedGeneration = -1
	p.Status.History = []v1alpha2.ReleaseRevision{{
		Number: 3, Status: v1alpha2.RevisionDeployed, Version: "v1.0.0", Time: metav1.NewTime(now),
	}}
	g.Expect(live.Status().Update(t.Context(), p)).To(Succeed())

	recorder := events.NewFakeRecorder(10)
	r := &Reconciler{Type: v1alpha2.InfrastructureProviderType, Dependencies: &Dependencies{
		Client: consistency.NewClient(live, live), APIReader: live, Events: recorder,
	}}
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p)}

	g.Expect(func() { _, _ = r.Reconcile(t.Context(), request) }).To(Panic(), "there are no clusters; controller-runtime "+
		"counts, logs and retries it")

	before := p.DeepCopy()
	g.Expect(live.Get(t.Context(), request.NamespacedName, p)).To(Succeed())

	for name, status := range map[string]metav1.ConditionStatus{
		v1alpha2.ReadyCondition: metav1.ConditionFalse, v1alpha2.ReconcilingCondition: metav1.ConditionTrue,
	} {
		g.Expect(v1alpha2.FindCondition(p.GetConditions(), name)).To(And(
			HaveField("Status", status), HaveField("Reason", v1alpha2.InternalErrorReason),
			HaveField("Message", HavePrefix("v1.0.0 is installed"))), name)
	}

	g.Expect(v1alpha2.FindCondition(p.GetConditions(), v1alpha2.ReadyCondition).Message).To(Equal(
		"v1.0.0 is installed: a bug in Capstan ended this reconcile, which is tried again, later each time; report it to " +
			"Capstan's developers, with InfrastructureProvider default/aws and what the operator's log has of it after " +
			`"Observed a panic"`))
	g.Expect(recorder.Events).To(Receive(HavePrefix("Warning InternalError v1.0.0 is installed: a bug")))

	p.Status.Conditions = nil
	g.Expect(p.Status).To(Equal(before.Status))
}

// TestCausesAreCutFirst: the verdict and the remedy of a long message stay.
func TestCausesAreCutFirst(t *testing.T) {
	g := NewWithT(t)
	said := message{
		runs: "v1.0.0 runs", wanted: "v1.1.0 failed", causes: []string{strings.Repeat("no node ", 1000)}, remedy: "run `a`",
	}

	made := of(newTestRun(), said.of(Result{Outcome: Stalled, Reason: "Some"}))
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
	r := newTestRun(failed)
	r.provider.GetStatus().InstalledVersion = new("v1.0.0")
	r.change.release.Decision.Action = state.Stop
	r.installed.Record.Description = "no node"

	said := map[string]string{}
	for _, c := range r.report(r.summarize(Result{}, Result{}), now).Status.Conditions {
		said[c.Type] = c.Message
	}

	const short = "v1.1.0 failed, given up"

	NewWithT(t).Expect(said).To(Equal(map[string]string{
		v1alpha2.ReadyCondition: short + ": no node; to try again, run `capstan reconcile infrastructure-aws`",

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
			r := with(newTestRun(), v1alpha2.ReadyCondition, "Some", "wrong", metav1.ConditionFalse, test.existed)
			result := Result{Outcome: Stalled, Reason: "Some", message: because("wrong"), At: test.at}
			NewWithT(t).Expect(of(r, result).After).To(Equal(test.after))
		})
	}
}

func TestRemoteClusterIsLookedAtAgain(t *testing.T) {
	waiting := Result{Outcome: Waiting, Reason: "Some", message: because("waiting")}
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
			r := newTestRun()
			r.target, r.RemoteInterval = &clusters.Target{Remote: true}, 5*time.Minute
			r = with(r, v1alpha2.ReadyCondition, test.result.Reason, test.result.text(), metav1.ConditionFalse, test.age)

			NewWithT(t).Expect(of(r, test.result).After).To(Equal(test.after))
		})
	}
}

func TestWaitsThatAreLimited(t *testing.T) {
	limited := Result{Outcome: Waiting, Reason: "Some", message: because("waiting"), Limited: true}
	unlimited := limited
	unlimited.Limited = false
	retrying := limited
	retrying.Outcome = Retrying

	waits := func(reason string, since time.Duration) *run {
		return with(newTestRun(), v1alpha2.ReconcilingCondition, reason, "waited", metav1.ConditionTrue, since)
	}

	for name, test := range map[string]struct {
		result  Result
		r       *run
		overdue bool
		after   time.Duration
	}{
		"first":                          {limited, newTestRun(), false, 5*time.Minute + time.Second},
		"for a while":                    {limited, waits("Some", time.Minute), false, 4*time.Minute + time.Second},
		"too long":                       {limited, waits("Some", time.Hour), true, 0},
		"for another reason":             {limited, waits("Other", time.Hour), false, 5*time.Minute + time.Second},
		"retrying too long":              {retrying, waits("Some", time.Hour), true, 0},
		"for the pods of a new revision": {unlimited, waits("Some", time.Hour), false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			report := of(test.r, test.result)
			g.Expect(report.After).To(Equal(test.after))
			g.Expect(report.condition(v1alpha2.StalledCondition).Type != "").To(Equal(test.overdue))
			g.Expect(report.condition(v1alpha2.ReconcilingCondition).Type != "").To(Equal(!test.overdue))

			if !test.overdue {
				return
			}

			g.Expect(report.condition(v1alpha2.ReadyCondition).Message).To(Equal(
				"waiting; this takes longer than spec.release.timeout (5m)"))
			g.Expect(report.condition(v1alpha2.StalledCondition).LastTransitionTime.Time).To(Equal(now.Add(-time.Hour)),
				"since the wait began")
			g.Expect(report.Events).To(ConsistOf(HaveField("Type", "Warning")))

			*test.r.provider.GetStatus() = report.Status
			again := of(test.r, test.result)
			g.Expect(again.Status).To(Equal(report.Status), "it stays overdue")
			g.Expect(again.Events).To(BeEmpty())
		})
	}
}

func TestStoppedChangeKeepsProviderInstalled(t *testing.T) {
	g := NewWithT(t)
	result := refused
	result.Condition = v1alpha2.ProviderInstalledCondition

	installed := of(newTestRun(revision(3, v1alpha2.RevisionDeployed, former)), result)
	g.Expect(installed.condition(v1alpha2.ProviderInstalledCondition).Status).To(Equal(metav1.ConditionTrue))
	g.Expect(installed.condition(v1alpha2.ReadyCondition).Status).To(Equal(metav1.ConditionFalse))

	absent := of(newTestRun(), result)
	g.Expect(absent.condition(v1alpha2.ProviderInstalledCondition).Reason).To(Equal(v1alpha2.VersionNotFoundReason))

	unread := with(newTestRun(), v1alpha2.ProviderInstalledCondition, "Some", "it is", metav1.ConditionTrue, time.Hour)
	unread.installed.observed = false
	g.Expect(of(unread, result).condition(v1alpha2.ProviderInstalledCondition).Message).To(Equal("it is"),
		"as far as is known")
}

// TestRefusedChangeOfCRDsIsWithdrawn: the condition about it lasts as long as the change is asked for.
func TestRefusedChangeOfCRDsIsWithdrawn(t *testing.T) {
	refused := func(status metav1.ConditionStatus) *run {
		r := newTestRun(revision(1, v1alpha2.RevisionDeployed, wanted))
		return with(r, v1alpha2.CRDsSafeCondition, v1alpha2.UnsafeCRDsReason, "refused", status, 0)
	}

	for outcome, kept := range map[Outcome]bool{Waiting: true, Stalled: true, Ready: false} {
		report := of(refused(metav1.ConditionFalse), Result{Outcome: outcome, Reason: v1alpha2.HealthyReason})
		NewWithT(t).Expect(report.condition(v1alpha2.CRDsSafeCondition).Type != "").To(Equal(kept), "outcome %d", outcome)
	}

	report := of(refused(metav1.ConditionTrue), Result{Outcome: Ready, Reason: v1alpha2.HealthyReason})
	NewWithT(t).Expect(report.condition(v1alpha2.CRDsSafeCondition).Status).To(Equal(metav1.ConditionTrue))
}

// pausedDeployment returns a Deployment as a paused revision has it.
func pausedDeployment() *unstructured.Unstructured {
	deployment := &unstructured.Unstructured{}
	deployment.SetAPIVersion("apps/v1")
	deployment.SetKind("Deployment")
	deployment.SetAnnotations(map[string]string{v1alpha2.PausedReplicasAnnotation: "1"})

	return deployment
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
			r := newTestRun(state.Revision{
				ReleaseRevision: v1alpha2.ReleaseRevision{Number: 2, Status: test.status, Paused: test.marked},
				Origin:          2,
			})
			if test.paused {
				r.installed.Record.Objects = []*unstructured.Unstructured{pausedDeployment()}
			}

			if test.before {
				r = with(r, v1alpha2.PausedCondition, v1alpha2.PausedReason, "before", metav1.ConditionTrue, 0)
			}

			paused := of(r, Result{Outcome: Ready}).condition(v1alpha2.PausedCondition)
			NewWithT(t).Expect(paused.Status == metav1.ConditionTrue).To(Equal(test.want))
		})
	}
}

// TestPausedIsTrueOnlyWithoutPods: core changes to another contract only while all providers are paused.
func TestPausedIsTrueOnlyWithoutPods(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*run)
		want   metav1.ConditionStatus
	}{
		"without pods":  {func(*run) {}, metav1.ConditionTrue},
		"scaled again":  {func(r *run) { r.installed.replicas.running = true }, ""},
		"not looked at": {func(r *run) { r.installed.health = nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTestRun(state.Revision{
				ReleaseRevision: v1alpha2.ReleaseRevision{Number: 2, Status: v1alpha2.RevisionDeployed, Paused: true},
				Origin:          2,
			})
			test.change(r)

			paused := of(r, Result{Outcome: Ready}).condition(v1alpha2.PausedCondition)
			NewWithT(t).Expect(paused.Status).To(Equal(test.want))
		})
	}
}

func TestContractIsThatOfTheNewestRevision(t *testing.T) {
	g := NewWithT(t)
	r := newTestRun(revision(2, v1alpha2.RevisionDeployed, former))
	r.provider.GetStatus().Contract = new("v1beta2")
	r.identified = true
	r.installed.Record.Contract = "v1beta1"
	g.Expect(of(r, refused).Status.Contract).To(HaveValue(Equal("v1beta1")))

	r.installed.Record.Contract = ""
	g.Expect(of(r, refused).Status.Contract).To(BeNil(), "a chart of another program")

	lost := newTestRun()
	lost.provider.GetStatus().Contract = new("v1beta2")
	g.Expect(of(lost, refused).Status.Contract).To(HaveValue(Equal("v1beta2")), "the records may be lost")

	lost.done.uninstalled = true
	g.Expect(of(lost, refused).Status.Contract).To(BeNil(), "uninstalled")
}

func TestSecondResourceDoesNotClaimTheRelease(t *testing.T) {
	g := NewWithT(t)
	r := newTestRun(revision(1, v1alpha2.RevisionDeployed, wanted))
	g.Expect(of(r, refused).Status.Release).To(BeNil())

	r.identified = true
	g.Expect(of(r, refused).Status.Release).To(HaveField("Revision", 1))
}

func TestUninstalledByOthersIsRemembered(t *testing.T) {
	g := NewWithT(t)
	r := newTestRun(revision(1, v1alpha2.RevisionUninstalled, wanted))
	r.change.release.Decision.Action = state.Hold
	r.provider.GetStatus().Release = &v1alpha2.ReleaseStatus{Name: "infrastructure-aws", Status: "deployed"}
	r.provider.GetStatus().InstalledVersion = new("v1.0.0")
	r = with(r, v1alpha2.DriftedCondition, "Some", "differs", metav1.ConditionTrue, 0)

	report := of(r, r.uninstalledByOthers())
	g.Expect(report.Status.InstalledVersion).To(BeNil())
	g.Expect(report.Status.Release).To(HaveField("Status", v1alpha2.RevisionUninstalled))
	g.Expect(report.condition(v1alpha2.DriftedCondition).Type).To(BeEmpty())
	g.Expect(report.condition(v1alpha2.ReadyCondition).Message).To(ContainSubstring("another program uninstalled release"))
}

func TestInstallationThatIsAskedForAgainIsNotHeld(t *testing.T) {
	g := NewWithT(t)
	r := newTestRun()
	r.provider.GetStatus().Release = &v1alpha2.ReleaseStatus{Name: "aws"}
	r.change.release.State.State = state.Absent
	r.change.release.Decision.Action = state.Apply
	stopped := Summary{Result: because("a timeout").of(
		Result{Outcome: Retrying, Reason: v1alpha2.InstallFailedReason})}

	g.Expect(r.report(stopped, now).Status.Release).To(BeNil())

	r.installed.observed = false
	g.Expect(r.report(stopped, now).Status.Release).NotTo(BeNil(), "nothing was seen")

	r.installed.observed, r.change.release.Decision.Action = true, state.Hold
	g.Expect(r.report(stopped, now).Status.Release).NotTo(BeNil(), "it is respected")
}

func TestDriftIsNewsOnce(t *testing.T) {
	g := NewWithT(t)
	r := newTestRun(revision(1, v1alpha2.RevisionDeployed, wanted))
	r.installed.deviations = new(drifted("a", "b", "c", "d", "e", "f", "g"))

	first := of(r, Result{Outcome: Ready})
	g.Expect(first.Drifted).To(Equal(7))
	g.Expect(first.Events).To(ContainElement(HaveField("Note", And(
		HavePrefix("Deployment a: "), ContainSubstring("; Deployment e: "), HaveSuffix(" (and 2 more)")))))
	g.Expect(first.condition(v1alpha2.DriftedCondition).Reason).To(Equal(v1alpha2.DriftNotCorrectedReason))

	*r.provider.GetStatus() = first.Status
	again := of(r, Result{Outcome: Ready})
	g.Expect(again.Drifted).To(BeZero())
	g.Expect(again.Events).To(BeEmpty())

	r.provider.GetSpec().Release = &v1alpha2.ReleaseSpec{Drift: v1alpha2.DriftWarn}
	g.Expect(of(r, Result{Outcome: Ready}).condition(v1alpha2.DriftedCondition).Reason).To(
		Equal(v1alpha2.DriftDetectedReason))

	*r.installed.deviations = nil
	g.Expect(of(r, Result{Outcome: Ready}).condition(v1alpha2.DriftedCondition).Type).To(BeEmpty())

	r.installed.health = &health.Report{Unwatched: []string{"Deployment"}}
	g.Expect(of(r, Result{Outcome: Ready}).condition(v1alpha2.DriftedCondition)).To(And(
		HaveField("Status", metav1.ConditionUnknown), HaveField("Message", r.installed.health.Late())))

	r.installed.deviations = nil
	g.Expect(of(r, Result{Outcome: Ready}).condition(v1alpha2.DriftedCondition).Type).NotTo(BeEmpty(), "not compared")
}

func TestInputsThatCannotBeUsed(t *testing.T) {
	g := NewWithT(t)
	r := newTestRun(revision(1, v1alpha2.RevisionDeployed, wanted))
	r.change.problem = Result{Outcome: Stalled, Reason: v1alpha2.SecretNotFoundReason, message: because("no Secret")}

	report := of(r, Result{Outcome: Ready, At: now.Add(time.Hour)})
	g.Expect(report.condition(v1alpha2.InputsUnavailableCondition).Message).To(Equal(
		"no Secret; what is installed stays as it is"))
	g.Expect(report.After).To(Equal(MinRetry), "the Secret may not be watched")

	*r.provider.GetStatus() = report.Status
	r.change = change{begun: true}
	g.Expect(of(r, Result{Outcome: Ready}).condition(v1alpha2.InputsUnavailableCondition).Type).To(BeEmpty())
}

func TestPendingChangesStayWhileInputsAreUnknown(t *testing.T) {
	g := NewWithT(t)
	r := newTestRun(revision(1, v1alpha2.RevisionDeployed, wanted))
	r.change.release.Decision.Action = state.None
	r = with(r, v1alpha2.ChangesPendingCondition, v1alpha2.InputsChangedReason, "the Secret", metav1.ConditionTrue, 0)

	r.change.problem = Result{Outcome: Stalled, Reason: v1alpha2.SecretNotFoundReason, message: because("no Secret")}
	g.Expect(of(r, Result{Outcome: Ready}).condition(v1alpha2.ChangesPendingCondition).Message).To(Equal("the Secret"))

	r.change.problem = Result{}
	g.Expect(of(r, Result{Outcome: Ready}).condition(v1alpha2.ChangesPendingCondition).Type).To(BeEmpty())
}

func TestAutomaticUpgradeThatWasGivenUpIsNewsOnce(t *testing.T) {
	g := NewWithT(t)
	status := &v1alpha2.ProviderStatus{}
	last := &v1alpha2.AutomaticUpgrade{Version: "v1.0.1", Revision: 2, Result: v1alpha2.UpgradeFailed}
	g.Expect(writeAutomatic(status, last)).To(BeEmpty(), "it is not rolled back yet")

	given := *last
	given.Message = "not healthy"
	g.Expect(writeAutomatic(status, &given)).To(ConsistOf(HaveField("Note", HavePrefix(
		"v1.0.1 failed, given up until a newer version exists: not healthy; to try it again, change the annotation "))))
	g.Expect(writeAutomatic(status, &given)).To(BeEmpty())

	next := &v1alpha2.AutomaticUpgrade{Version: "v1.0.2", Revision: 4, Message: "not healthy"}
	g.Expect(writeAutomatic(status, next)).To(ConsistOf(HaveField("Note", HavePrefix("v1.0.2 failed"))))

	g.Expect(writeAutomatic(status, nil)).To(BeEmpty())
	g.Expect(status.AutomaticUpgrade).To(BeNil())
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
			ready{"False", progressing, "waiting"}, Result{Outcome: Ready, Reason: "Succeeded", message: because("installed")},
			"Normal Succeeded installed",
		},
		"stays ready": {
			ready{"True", "Succeeded", "ok"}, Result{Outcome: Ready, Reason: "Succeeded", message: because("ok")}, "",
		},
		"begins to progress": {ready{}, Result{Outcome: Waiting, Reason: progressing, message: because("waiting")}, ""},
		"progresses after a wait": {
			ready{"False", "Waiting", "for core"},
			Result{Outcome: Waiting, Reason: progressing, message: because("waiting")}, "",
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
			ready{"False", "Wrong", "no such version"},
			Result{Outcome: Stalled, Reason: "Wrong", message: because("no such key")},
			"Warning Wrong no such key",
		},
		"is no longer ready": {
			ready{"True", "Succeeded", "ok"}, Result{Outcome: Waiting, Reason: progressing, message: because("a pod crashes")},
			"Normal Progressing a pod crashes",
		},
		"cannot be upgraded for now": {
			ready{"True", "Succeeded", "ok"},
			Result{Outcome: Retrying, Reason: v1alpha2.InstallFailedReason, message: because("EOF")},
			"Warning InstallFailed EOF",
		},
		"waits for a migration that fails": {
			ready{"True", "Succeeded", "ok"},
			Result{Outcome: Waiting, Reason: v1alpha2.CRDMigrationFailedReason, message: because("no webhook")},
			"Warning CRDMigrationFailed no webhook",
		},
		"is no longer healthy": {
			ready{"True", "Succeeded", "ok"}, ofVersion("v1.0.0", v1alpha2.UnhealthyReason, "a pod crashes"),
			"Warning Unhealthy applying v1.0.0: a pod crashes",
		},
		"waits for core": {
			ready{}, Result{Outcome: Waiting, Reason: "Waiting", message: because("for core")}, "Normal Waiting for core",
		},
		"is stalled": {
			ready{}, Result{Outcome: Stalled, Reason: "Wrong", message: because("no such")}, "Warning Wrong no such",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := newTestRun()

			if c.before.reason != "" {
				r = with(r, v1alpha2.ReadyCondition, c.before.reason, c.before.message, c.before.status, time.Hour)
			}

			if c.before.status == metav1.ConditionFalse {
				r = with(r, v1alpha2.ReconcilingCondition, c.before.reason, c.before.message, metav1.ConditionTrue, time.Hour)
			}

			report := of(r, c.result)
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
		told   attempt
		events []string
	)

	reconcile := func(action state.Action, found *health.Report, revisions ...state.Revision) {
		r := newTestRun(revisions...)
		r.installed.Record.Description, r.installed.health = "no node", found
		*r.provider.GetStatus(), r.change.release.Decision.Action = status, action
		r.memory.told = told

		if action == state.Wait {
			r.change.release.Decision.Until = now.Add(time.Minute)
		}

		if action == state.None {
			r.change.release.State.State = state.InSync
			r.installed.Record.AppVersion = "v1.1.0"
		}

		made := r.report(r.summarize(Result{}, Result{}), now)
		status, told = made.Status, made.Told

		for _, e := range made.Events {
			events = append(events, e.Type+" "+e.Note)
		}
	}

	healthy := &health.Report{}
	deployed := revision(4, v1alpha2.RevisionDeployed, wanted)

	reconcile(state.Wait, missing, rollback, failed)
	reconcile(state.Wait, healthy, rollback, failed)
	reconcile(state.None, missing, deployed, rollback, failed)
	g.Expect(events).To(ConsistOf(HavePrefix(
		"Warning v1.1.0 failed, will be tried again: no node")))

	events = nil

	rollback.Number = 5
	reconcile(state.Stop, missing, rollback, again, failed)
	reconcile(state.Stop, healthy, rollback, again, failed)
	g.Expect(events).To(ConsistOf(HavePrefix(
		"Warning v1.1.0 failed twice, given up: no node")))

	events = nil

	reconcile(state.Wait, healthy, rollback, again, failed)
	g.Expect(events).To(BeEmpty())

	p := newTestRun().provider
	p.GetStatus().History = []v1alpha2.ReleaseRevision{{Number: 5}, {Number: 4, Status: v1alpha2.RevisionFailed}}
	g.Expect(toldOf(p)).To(Equal(attempt{revision: 4}), "another process has reported it")
}

func TestWarningsShareAnEvent(t *testing.T) {
	g := NewWithT(t)
	g.Expect(ignored(nil)).To(BeEmpty())
	g.Expect(ignored([]string{"one is ignored", "two is ignored"})).To(ConsistOf(
		And(HaveField("Note", "one is ignored; two is ignored"), HaveField("Type", "Warning"))))
}

func TestAdoptedObjectsAreNamed(t *testing.T) {
	g := NewWithT(t)
	g.Expect(adopted(nil)).To(BeEmpty())

	keys := []object.Key{{Name: "b"}, {Name: "a"}}
	keys[0].Kind, keys[1].Kind = "Role", "Role"
	g.Expect(adopted(keys)).To(ConsistOf(HaveField("Note", "Adopted 2 objects that existed: Role a, Role b")))
}

func TestOneAdoptedObjectIsCountedAsOne(t *testing.T) {
	r := newTestRun(state.Revision{
		ReleaseRevision: v1alpha2.ReleaseRevision{Number: 1, Status: v1alpha2.RevisionDeployed, Adopted: 1},
		Origin:          1,
	})

	installed := of(r, Result{Outcome: Ready}).condition(v1alpha2.ProviderInstalledCondition)
	NewWithT(t).Expect(installed.Message).To(HaveSuffix("; it adopted 1 existing object"))
}

func TestCorrectionNamesItsObject(t *testing.T) {
	g := NewWithT(t)
	role := object.Key{Name: "a"}
	g.Expect(corrected(role, true, "Role a is missing")).To(ConsistOf(And(
		HaveField("Action", "Create"), HaveField("Related", role), HaveField("Note", "Corrected drift: Role a is missing"))))
	g.Expect(corrected(role, false, "Role a differs")).To(ConsistOf(HaveField("Action", "Patch")))
}

func TestEachRewrittenObjectHasAnEvent(t *testing.T) {
	g := NewWithT(t)
	a, b := object.Key{Name: "a"}, object.Key{Name: "b"}
	a.Kind, b.Kind = "Role", "Role"

	g.Expect(rewritten(apply.Results{
		{Object: a, Outcome: apply.Created}, {Object: b, Outcome: apply.Failed, Reason: "it is not recreated"},
	})).To(BeEmpty())
	g.Expect(rewritten(apply.Results{
		{Object: a, Outcome: apply.Replaced, Reason: "x: no"}, {Object: b, Outcome: apply.Replaced, Reason: "y: no"},
		{Object: b, Outcome: apply.Updated, Removed: []string{"/1", "/2", "/3", "/4", "/5", "/6"}},
	})).To(ConsistOf(
		And(HaveField("Reason", v1alpha2.RecreatedReason), HaveField("Related", a),
			HaveField("Note", "Deleted and recreated Role a to change an immutable field: x: no")),
		And(HaveField("Reason", v1alpha2.RecreatedReason), HaveField("Related", b), HaveField("Note", HaveSuffix("y: no"))),
		And(HaveField("Reason", v1alpha2.FieldsRemovedReason), HaveField("Related", b), HaveField("Note",
			"Removed from Role b what is invalid beside the fields of the release: /1, /2, /3, /4, /5 and 1 more")),
	))
}

func TestRemovingNamesWhatIsLeft(t *testing.T) {
	g := NewWithT(t)

	g.Expect(removingResult("CoreProvider a/b", nil).text()).To(Equal(
		"CoreProvider a/b has no finalizers left, so the API server is deleting it"))
	g.Expect(removingResult("CoreProvider a/b", []string{"foregroundDeletion", "example.com/c"}).text()).To(Equal(
		"Capstan has finished removing the provider; CoreProvider a/b is deleted once the programs that added its other " +
			"finalizers remove them: foregroundDeletion, example.com/c"))
}

// TestHistory: what is known is entered for revisions with a digest only, and what was entered stays until its record
// exists, or is another one.
func TestHistory(t *testing.T) {
	known := "v1:two"
	newest := state.Revision{
		ReleaseRevision: v1alpha2.ReleaseRevision{
			Number: 2, Status: v1alpha2.RevisionDeployed, ContentDigest: "v1-x", Digest: known, Wave: new(3),
		},
	}
	planted := state.Revision{
		ReleaseRevision: v1alpha2.ReleaseRevision{Number: 2, Status: v1alpha2.RevisionDeployed},
	}
	older := state.Revision{
		ReleaseRevision: v1alpha2.ReleaseRevision{Number: 1, Status: v1alpha2.RevisionSuperseded, Healthy: true},
	}

	pending := v1alpha2.ReleaseRevision{Number: 3, Digest: "v1:three", Status: "pending-upgrade"}
	before := v1alpha2.ReleaseRevision{Number: 2, Digest: "v1:two", Status: "pending-upgrade", ContentDigest: "v1-x"}
	first := v1alpha2.ReleaseRevision{Number: 1, Digest: "v1:one", Status: "deployed"}

	confirmed := older
	confirmed.Digest = "v1:one"

	entered := And(
		HaveField("Digest", "v1:two"), HaveField("Status", v1alpha2.RevisionDeployed),
		HaveField("Wave", HaveValue(Equal(3))), HaveField("ContentDigest", "v1-x"),
	)
	bare := And(HaveField("Digest", ""), HaveField("Healthy", BeFalse()), HaveField("Status", v1alpha2.RevisionSuperseded))

	type entries = []v1alpha2.ReleaseRevision

	for name, c := range map[string]struct {
		newest, older state.Revision
		before        []v1alpha2.ReleaseRevision
		want          []any
	}{
		"one that is not known": {newest, older, nil, []any{entered, bare}},
		"one that is": {
			newest, confirmed, entries{before, first}, []any{entered, HaveField("Healthy", BeTrue())},
		},
		"one that was only entered": {newest, older, entries{pending, before}, []any{Equal(pending), entered, bare}},
		"another one in its place":  {planted, older, entries{before}, []any{Equal(before), bare}},
		"another one in place of an older revision": {
			newest, older, entries{before, first}, []any{entered, bare},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTestRun(c.newest, c.older)
			status := &v1alpha2.ProviderStatus{History: c.before}

			NewWithT(t).Expect(r.history(status)).To(HaveExactElements(c.want...))
		})
	}
}

// TestUpgraded: an upgrade has succeeded once the new version is known to be healthy.
func TestUpgraded(t *testing.T) {
	first, second := revision(1, v1alpha2.RevisionDeployed, wanted), revision(2, v1alpha2.RevisionDeployed, wanted)
	healthy := second
	healthy.Healthy = true

	for name, c := range map[string]struct {
		newest state.Revision
		failed int
		before metav1.ConditionStatus
		want   metav1.ConditionStatus
	}{
		"an installation":                  {newest: first},
		"an upgrade":                       {newest: second},
		"an upgrade after another":         {newest: second, before: metav1.ConditionTrue},
		"an upgrade after one that failed": {newest: second, before: metav1.ConditionFalse},
		"one that is healthy":              {newest: healthy, want: metav1.ConditionTrue},
		"one that has failed":              {newest: second, failed: 2, want: metav1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTestRun(c.newest)
			r.provider.GetStatus().InstalledVersion = new("v1.0.0")
			r.change.release.State.State = state.InSync

			if c.before != "" {
				with(r, v1alpha2.ProviderUpgradedCondition, "Before", "", c.before, time.Hour)
			}

			report := r.report(Summary{Attempt: c.failed}, now)
			NewWithT(t).Expect(report.condition(v1alpha2.ProviderUpgradedCondition).Status).To(Equal(c.want))
		})
	}
}
