package reconcile

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/chartgen/supply/store"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/release"
	"github.com/capstan-project/capstan/controllers/release/state"
)

const (
	wanted = "digest of what is wanted"
	former = "digest of what was wanted before"
)

// newTestRun returns a run of a provider whose release has the given revisions, newest first. The
// newest holds v1.0.0 and is healthy.
func newTestRun(revisions ...state.Revision) *run {
	p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Namespace: "capa-system", Name: "aws"}}
	r := newRun(&Reconciler{}, p, nil)
	r.observed = true
	r.goal = goal{version: "v1.1.0", digest: wanted}
	r.desired = wanted
	r.installed.history = state.History{
		Release: plan.ReleaseKey(p), Revisions: revisions,
	}

	if len(revisions) > 0 {
		r.installed.revision = revisions[0]
		r.installed.record = &release.Record{AppVersion: "v1.0.0", Description: "Upgrade complete"}
		r.installed.health = &health.Report{}
	}

	return r
}

// revision returns a revision that Capstan made.
func revision(number int, status state.Status, digest string) state.Revision {
	return state.Revision{Number: number, Origin: number, Status: status, Digest: digest, Confirmed: true}
}

// unhealthy returns a health report of an object that is missing.
func unhealthy() *health.Report {
	return &health.Report{Objects: []health.ObjectHealth{{
		Object: object.Key{Name: "manager"}, Result: health.Result{Message: "is missing"},
	}}}
}

func TestStoppedChangeReportsWhatIsInstalled(t *testing.T) {
	stopped := failed(&source.NotFoundError{Message: "there is no v9.9.9"}, fetching)

	for name, test := range map[string]struct {
		run     *run
		care    Result
		message string
	}{
		"nothing installed": {
			run:     newTestRun(),
			message: "there is no v9.9.9",
		},
		"healthy": {
			run:     newTestRun(revision(3, state.StatusDeployed, former)),
			message: "there is no v9.9.9; v1.0.0 stays installed, as revision 3, and is healthy",
		},
		"failed": {
			run: newTestRun(revision(3, state.StatusFailed, former)),
			message: "there is no v9.9.9; v1.0.0 stays installed, as revision 3, which is failed: " +
				"Upgrade complete",
		},
		"with a problem of its own": {
			run:  newTestRun(revision(3, state.StatusDeployed, former)),
			care: failed(errors.New("cannot be corrected"), applying),
			message: "there is no v9.9.9; v1.0.0 stays installed, as revision 3, and is healthy; " +
				"cannot be corrected",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			result := test.run.summarize(test.care, stopped)
			g.Expect(result.Outcome).To(Equal(Stalled))
			g.Expect(result.Reason).To(Equal(v1alpha2.VersionNotFoundReason))
			g.Expect(result.Message).To(Equal(test.message))
		})
	}
}

func TestStoppedChangeKeepsProviderInstalled(t *testing.T) {
	g := NewWithT(t)
	stopped := failed(&source.NotFoundError{}, fetching)

	r := newTestRun(revision(3, state.StatusDeployed, former))
	_, err := r.end(r.summarize(Result{}, stopped))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(conditions.IsTrue(r.provider, v1alpha2.ProviderInstalledCondition)).To(BeTrue())
	g.Expect(conditions.IsFalse(r.provider, v1alpha2.ReadyCondition)).To(BeTrue())

	r = newTestRun()
	_, err = r.end(r.summarize(Result{}, stopped))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(conditions.GetReason(r.provider, v1alpha2.ProviderInstalledCondition)).To(
		Equal(v1alpha2.VersionNotFoundReason))
}

func TestHealthDecidesWhenTheReleaseIsInSync(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(*run)
		outcome Outcome
		reason  string
	}{
		"healthy": {func(*run) {}, Ready, v1alpha2.HealthyReason},
		"paused":  {func(r *run) { r.installed.revision.Paused = true }, Ready, v1alpha2.PausedReason},
		"not yet healthy": {
			func(r *run) { r.installed.health = unhealthy() }, Waiting, v1alpha2.ProgressingReason,
		},
		"no longer healthy": {func(r *run) {
			r.installed.health = unhealthy()
			r.installed.revision.Healthy = true
		}, Waiting, v1alpha2.UnhealthyReason},
		"made by another program": {func(r *run) {
			r.state.State = state.Unmanaged
			r.decision.Action = state.Hold
		}, Ready, v1alpha2.ExternalChangeReason},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := newTestRun(revision(1, state.StatusDeployed, wanted))
			r.state.State = state.InSync
			test.prepare(r)

			result := r.summarize(Result{}, Result{})
			g.Expect(result.Outcome).To(Equal(test.outcome))
			g.Expect(result.Reason).To(Equal(test.reason))
		})
	}
}

func TestHeldMessage(t *testing.T) {
	g := NewWithT(t)
	r := newTestRun(revision(1, state.StatusDeployed, wanted))
	r.installed.record.AppVersion = "v1.0.0"

	r.provider.GetStatus().DesiredVersion = "v1.1.0"
	g.Expect(r.heldMessage()).To(HaveSuffix("; to accept it, set spec.version to v1.0.0"))

	r.provider.GetStatus().DesiredVersion = "v1.0.0"
	g.Expect(r.heldMessage()).To(HaveSuffix("; to keep it, leave this resource as it is"))
}

func TestUnknownHealthIsTheResultOfCare(t *testing.T) {
	r := newTestRun(revision(1, state.StatusDeployed, wanted))
	r.state.State = state.InSync
	r.installed.health = nil

	result := r.summarize(failed(errors.New("Deployments cannot be listed"), applying), Result{})
	NewWithT(t).Expect(result.Message).To(Equal("Deployments cannot be listed"))
}

func TestAttemptFailed(t *testing.T) {
	next := time.Now().Add(time.Minute)
	rollback := revision(3, state.StatusDeployed, former)
	rollback.RollbackTo = 1

	timedOut := revision(2, state.StatusFailed, wanted)
	timedOut.Failure = state.FailureUnhealthy

	for name, test := range map[string]struct {
		run       *run
		decision  state.Decision
		outcome   Outcome
		reason    string
		condition string
		message   string
	}{
		"rolled back, with a retry to come": {
			run:      newTestRun(rollback, timedOut, revision(1, state.StatusSuperseded, former)),
			decision: state.Decision{Action: state.Wait, Until: next},
			outcome:  Waiting, reason: v1alpha2.TimedOutWaitingForDeploymentReason,
			message: "v1.0.0 runs again, as revision 3",
		},
		"given up": {
			run:      newTestRun(rollback, timedOut, revision(1, state.StatusSuperseded, former)),
			decision: state.Decision{Action: state.Stop, Attempts: 2},
			outcome:  Stalled, reason: v1alpha2.TimedOutWaitingForDeploymentReason,
			message: "given up after 2 attempts",
		},
		"not rolled back": {
			run:      newTestRun(revision(2, state.StatusFailed, wanted)),
			decision: state.Decision{Action: state.Wait, Until: next},
			outcome:  Waiting, reason: v1alpha2.InstallFailedReason,
			condition: v1alpha2.ProviderInstalledCondition,
			message:   "v1.1.0 failed: Upgrade complete",
		},
		"not rolled back, because that is refused": {
			run:      refusing(newTestRun(revision(2, state.StatusFailed, wanted))),
			decision: state.Decision{Action: state.Wait, Until: next},
			outcome:  Waiting, reason: v1alpha2.InstallFailedReason,
			condition: v1alpha2.ProviderInstalledCondition,
			message: "v1.1.0 failed: Upgrade complete; it stays, because the provider cannot return to v1.0.0 of " +
				"revision 1: its managers are too old",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			test.run.decision = test.decision

			result := test.run.summarize(Result{}, Result{})
			g.Expect(result.Outcome).To(Equal(test.outcome))
			g.Expect(result.Reason).To(Equal(test.reason))
			g.Expect(result.Condition).To(Equal(test.condition))
			g.Expect(result.Message).To(ContainSubstring(test.message))
			g.Expect(result.At).To(Equal(test.decision.Until))
		})
	}
}

// refusing returns the run after it has refused to roll back to revision 1.
func refusing(r *run) *run {
	r.refuse(state.Revision{Number: 1, Version: "v1.0.0"}, errors.New("its managers are too old"))

	return r
}

func TestRefusalNamesTheNewestTarget(t *testing.T) {
	g := NewWithT(t)
	r := newTestRun(revision(3, state.StatusFailed, wanted))
	r.refuse(state.Revision{Number: 2, Version: "v1.0.1"}, errors.New("too old"))
	r.refuse(state.Revision{Number: 1, Version: "v1.0.0"}, errors.New("much too old"))

	g.Expect(r.refusal).To(HaveSuffix("v1.0.1 of revision 2: too old"))
	g.Expect(r.policy.Refused).To(Equal(map[int]bool{1: true, 2: true}))
}

func TestAttemptThatCanBeMadeAtOnceIsNotStalled(t *testing.T) {
	g := NewWithT(t)
	r := newTestRun(revision(2, state.StatusFailed, wanted))
	r.decision = state.Decision{Action: state.Apply}

	result := r.summarize(Result{}, Result{})
	g.Expect(result.Outcome).To(Equal(Waiting))
	g.Expect(result.At).To(BeTemporally("~", time.Now(), time.Second))
}

func TestAttemptFailedWithAProblemOfCare(t *testing.T) {
	g := NewWithT(t)
	r := newTestRun(revision(2, state.StatusFailed, wanted), revision(1, state.StatusSuperseded, former))
	r.decision = state.Decision{Action: state.Rollback}
	failure := errors.New("connection refused")

	result := r.summarize(failed(failure, applying), Result{})
	g.Expect(result.Outcome).To(Equal(Retrying))
	g.Expect(result.Err).To(MatchError(failure))
	g.Expect(result.Message).To(HaveSuffix("; connection refused"))
}

func TestAttemptedDigest(t *testing.T) {
	automatic := revision(3, state.StatusDeployed, former)
	automatic.RollbackTo = 1

	requested := revision(3, state.StatusDeployed, rollbackDigestPrefix+"1")
	requested.RollbackTo = 1

	prebuilt := state.Revision{Number: 3, Origin: 1, Status: state.StatusDeployed}

	for name, test := range map[string]struct {
		newest   state.Revision
		expected string
	}{
		"an upgrade":                      {revision(3, state.StatusDeployed, wanted), wanted},
		"an automatic rollback":           {automatic, wanted},
		"a rollback that was asked for":   {requested, rollbackDigestPrefix + "1"},
		"a revision of another program's": {prebuilt, wanted},
	} {
		t.Run(name, func(t *testing.T) {
			history := state.History{Revisions: []state.Revision{
				test.newest, revision(2, state.StatusFailed, wanted), revision(1, state.StatusSuperseded, former),
			}}
			NewWithT(t).Expect(attemptedDigest(history)).To(Equal(test.expected))
		})
	}
}

func TestNeedsCore(t *testing.T) {
	with := func(contract string) *plan.Chart {
		metadata := chart.Metadata{Annotations: map[string]string{chartgen.AnnotationContract: contract}}
		return &plan.Chart{Stored: &store.Stored{Chart: &chart.Chart{Metadata: metadata}}}
	}

	for name, test := range map[string]struct {
		run       *run
		installed string
		contract  string
		expected  bool
	}{
		"a first install":       {newTestRun(), "", "v1beta1", true},
		"a planted record":      {newTestRun(state.Revision{Number: 1, Origin: 1}), "v1beta1", "v1beta1", true},
		"the same contract":     {newTestRun(revision(1, state.StatusDeployed, former)), "v1beta1", "v1beta1", false},
		"another contract":      {newTestRun(revision(1, state.StatusDeployed, former)), "v1beta1", "v1beta2", true},
		"an unknown contract":   {newTestRun(revision(1, state.StatusDeployed, former)), "", "v1beta1", false},
		"a plain chart instead": {newTestRun(revision(1, state.StatusDeployed, former)), "v1beta1", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			if test.run.installed.record != nil {
				test.run.installed.record.Contract = test.installed
			}

			test.run.plan.Chart = with(test.contract)
			NewWithT(t).Expect(test.run.needsCore()).To(Equal(test.expected))
		})
	}
}

func TestLimitedWaits(t *testing.T) {
	const timeout = 5 * time.Minute // the default

	waits := func(reason string, ago time.Duration) *metav1.Condition {
		return &metav1.Condition{
			Type: v1alpha2.ReconcilingCondition, Status: metav1.ConditionTrue, Reason: reason,
			LastTransitionTime: metav1.NewTime(time.Now().Add(-ago)),
		}
	}
	limited := Result{Outcome: Waiting, Reason: "Some", Message: "waiting", Limited: true}
	unlimited := limited
	unlimited.Limited = false
	retrying := limited
	retrying.Outcome = Retrying

	for name, test := range map[string]struct {
		result  Result
		before  *metav1.Condition
		overdue bool
		again   time.Duration
	}{
		"first":                          {limited, nil, false, timeout},
		"for a while":                    {limited, waits("Some", time.Minute), false, timeout - time.Minute},
		"too long":                       {limited, waits("Some", time.Hour), true, 0},
		"for another reason":             {limited, waits("Other", time.Hour), false, timeout},
		"retrying too long":              {retrying, waits("Some", time.Hour), true, 0},
		"for the pods of a new revision": {unlimited, waits("Some", time.Hour), false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := newTestRun()

			if test.before != nil {
				conditions.Set(r.provider, test.before)
			}

			result := r.limit(test.result)
			g.Expect(result.Overdue).To(Equal(test.overdue))
			g.Expect(until(result.At)).To(BeNumerically("~", test.again, 3*time.Second))

			_, _ = writeResult(r.provider, result)
			g.Expect(conditions.IsStalled(r.provider)).To(Equal(test.overdue))
			g.Expect(conditions.IsReconciling(r.provider)).To(Equal(!test.overdue))

			if test.overdue {
				g.Expect(conditions.GetMessage(r.provider, v1alpha2.ReadyCondition)).To(Equal(
					"waiting; this has taken longer than spec.release.timeout, which is 5m0s"))
				g.Expect(r.limit(test.result).Overdue).To(BeTrue(), "it stays overdue")
			}
		})
	}
}
