package provider

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/preflight"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// written returns a resource with the status that is written for a reconcile that ended so.
func written(r *run, ended Summary) *v1alpha2.InfrastructureProvider {
	p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Generation: r.provider.GetGeneration()}}
	p.Spec.Version = r.change.goal.version
	r.identified = true
	p.Status = r.report(ended, now).Status

	return p
}

// TestStandingIsWhatWasReported: what others depend on is what a reconcile has ended with.
func TestStandingIsWhatWasReported(t *testing.T) {
	revised := func(number int, status v1alpha2.RevisionStatus, version string) state.Revision {
		r := revision(number, status, wanted)
		r.Version = version

		return r
	}
	before := revised(1, v1alpha2.RevisionDeployed, "v1.0.0")

	upgrading := newTestRun(revised(2, v1alpha2.RevisionDeployed, "v1.1.0"), before)
	upgrading.provider.GetStatus().InstalledVersion = new("v1.0.0")
	upgrading.installed.Record.AppVersion = "v1.1.0"
	upgrading.installed.health = missing

	uninstalled := newTestRun()
	uninstalled.done.uninstalled = true

	paused := newTestRun(before)
	paused.change.goal.version = "v1.0.0"
	paused.installed.Record.Objects = []*unstructured.Unstructured{pausedDeployment()}

	wait := func(reason string) Summary {
		return Summary{Result: Result{Outcome: Waiting, Condition: v1alpha2.PreflightCheckCondition, Reason: reason}}
	}

	ready := Summary{Result: Result{Outcome: Ready, Reason: v1alpha2.HealthyReason}}
	progresses := Summary{Result: Result{Outcome: Waiting, Reason: v1alpha2.ProgressingReason}}
	installed := preflight.Standing{Installed: true}
	with := func(change func(*preflight.Standing)) preflight.Standing {
		s := installed
		change(&s)

		return s
	}

	healthy := newTestRun(before)
	healthy.change.goal.version = "v1.0.0"

	for name, c := range map[string]struct {
		r        *run
		ended    Summary
		expected preflight.Standing
	}{
		"healthy": {healthy, ready, with(func(s *preflight.Standing) { s.Ready = true })},
		"scaled down": {paused, Summary{Result: Result{Outcome: Ready, Reason: v1alpha2.HealthyReason}},
			with(func(s *preflight.Standing) { s.Ready, s.Paused = true, true })},
		"an upgrade that begins": {
			newTestRun(before), progresses, with(func(s *preflight.Standing) { s.Changing, s.Keeps = true, true }),
		},
		"a new version that is not healthy yet": {upgrading, progresses,
			with(func(s *preflight.Standing) { s.Changing, s.MayReturn = true, true })},
		"an upgrade that failed": {
			newTestRun(before), Summary{Result: progresses.Result, Attempt: 2},
			with(func(s *preflight.Standing) { s.Keeps = true }),
		},
		"an upgrade that waits for a user": {
			newTestRun(before), Summary{Result: refused}, with(func(s *preflight.Standing) { s.Keeps = true }),
		},
		"an upgrade whose contract does not fit": {
			newTestRun(before), wait(v1alpha2.CAPIVersionIncompatibilityReason),
			with(func(s *preflight.Standing) { s.Keeps = true }),
		},
		"an upgrade that waits for core": {
			newTestRun(before), wait(v1alpha2.WaitingForCoreProviderReadyReason),
			with(func(s *preflight.Standing) { s.Changing, s.Keeps, s.WaitsForCore = true, true, true }),
		},
		"a release that another program has changed": {
			healthy, Summary{Result: Result{Outcome: Idle, Reason: v1alpha2.ExternalChangeReason}}, installed,
		},
		"an installation that waits for core": {
			newTestRun(), wait(v1alpha2.WaitingForCoreProviderReadyReason), preflight.Standing{WaitsForCore: true},
		},
		"a provider that was uninstalled": {
			uninstalled, Summary{Result: removingResult("InfrastructureProvider a/b", nil)}, preflight.Standing{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(preflight.StandingOf(written(c.r, c.ended))).To(Equal(c.expected))
		})
	}
}

// TestBeginsEnds checks that a change which has begun without a revision is over at the end of the reconcile.
func TestBeginsEnds(t *testing.T) {
	g := NewWithT(t)
	r := newTestRun()
	ended := Summary{Result: Result{Outcome: Waiting}}
	status := r.provider.GetStatus()

	state.Begin(status, true, 1, "v1.0.0")
	g.Expect(r.report(ended, now).Status.History).To(BeEmpty())

	entered := state.Revision{
		ReleaseRevision: v1alpha2.ReleaseRevision{Number: 1, Status: v1alpha2.RevisionPendingInstall, Digest: "x"},
	}
	state.Enter(status, entered)
	g.Expect(r.report(ended, now).Status.History).To(HaveLen(1), "its record may exist")

	before := status.DeepCopy().History
	state.Begin(status, false, 1, "v1.0.0")
	g.Expect(status.History).To(Equal(before), "its digest is known")
}
