package report

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// written returns a resource with the status that is written for a reconcile that ended so.
func written(in Input, ended Summary) *v1alpha2.InfrastructureProvider {
	p := &v1alpha2.InfrastructureProvider{ObjectMeta: metav1.ObjectMeta{Generation: in.Provider.Generation}}
	p.Spec.Version = in.Change.Goal
	in.Installed.Identified = true
	p.Status = Of(in, ended).Status

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

	upgrading := newInput(revised(2, v1alpha2.RevisionDeployed, "v1.1.0"), before)
	upgrading.Provider.Status.InstalledVersion = new("v1.0.0")
	upgrading.Installed.Record.AppVersion = "v1.1.0"
	upgrading.Installed.Health = Health{Checked: true, Message: "Deployment manager is not available"}

	uninstalled := newInput()
	uninstalled.Uninstalled = true

	paused := newInput(before)
	paused.Change.Goal = "v1.0.0"
	paused.Installed.Record.Paused = true

	wait := func(reason string) Summary {
		return Summary{Result: Result{Outcome: Waiting, Condition: v1alpha2.PreflightCheckCondition, Reason: reason}}
	}

	ready := Summary{Result: Result{Outcome: Ready, Reason: v1alpha2.HealthyReason}}
	progresses := Summary{Result: Result{Outcome: Waiting, Reason: v1alpha2.ProgressingReason}}
	installed := Standing{Installed: true}
	with := func(change func(*Standing)) Standing {
		s := installed
		change(&s)

		return s
	}

	healthy := newInput(before)
	healthy.Change.Goal = "v1.0.0"

	for name, c := range map[string]struct {
		in       Input
		ended    Summary
		expected Standing
	}{
		"healthy": {healthy, ready, with(func(s *Standing) { s.Ready = true })},
		"scaled down": {paused, Summary{Result: Result{Outcome: Ready, Reason: v1alpha2.HealthyReason}},
			with(func(s *Standing) { s.Ready, s.Paused = true, true })},
		"an upgrade that begins": {
			newInput(before), progresses, with(func(s *Standing) { s.Changing, s.Keeps = true, true }),
		},
		"a new version that is not healthy yet": {upgrading, progresses,
			with(func(s *Standing) { s.Changing, s.MayReturn = true, true })},
		"an upgrade that failed": {
			newInput(before), Summary{Result: progresses.Result, Failed: "not healthy within 5m"},
			with(func(s *Standing) { s.Keeps = true }),
		},
		"an upgrade that waits for a user": {
			newInput(before), Summary{Result: refused}, with(func(s *Standing) { s.Keeps = true }),
		},
		"an upgrade whose contract does not fit": {
			newInput(before), wait(v1alpha2.CAPIVersionIncompatibilityReason),
			with(func(s *Standing) { s.Keeps = true }),
		},
		"an upgrade that waits for core": {
			newInput(before), wait(v1alpha2.WaitingForCoreProviderReadyReason),
			with(func(s *Standing) { s.Changing, s.Keeps, s.WaitsForCore = true, true, true }),
		},
		"a release that another program has changed": {
			healthy, Summary{Result: Result{Outcome: Idle, Reason: v1alpha2.ExternalChangeReason}}, installed,
		},
		"an installation that waits for core": {
			newInput(), wait(v1alpha2.WaitingForCoreProviderReadyReason), Standing{WaitsForCore: true},
		},
		"a provider that was uninstalled": {
			uninstalled, Summary{Result: Removing("InfrastructureProvider a/b", nil)}, Standing{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(StandingOf(written(c.in, c.ended))).To(Equal(c.expected))
		})
	}
}

// TestStandingOfRecordedReports checks standings against how the reconciles of scenarios have ended.
func TestStandingOfRecordedReports(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	seen := map[bool]int{}

	for _, path := range paths {
		recorded := readRecorded(t, path)
		ended := recorded.summary()
		standing := StandingOf(written(recorded.Input, ended))
		g := NewWithT(t)
		seen[standing.Ready]++

		g.Expect(standing.Ready).To(Equal(ended.Outcome == Ready), path)
		g.Expect(standing.Changing && (ended.Outcome == Ready || ended.Outcome == Stalled)).To(BeFalse(), path)
		g.Expect(standing.WaitsForCore).To(Equal(ended.Reason == v1alpha2.WaitingForCoreProviderReadyReason), path)

		if recorded.Input.Installed.Healthy() {
			g.Expect(standing.MayReturn).To(BeFalse(), "%s: there is nothing better to return to", path)
		}
	}

	NewWithT(t).Expect(seen).To(And(HaveKeyWithValue(true, BeNumerically(">", 5)), HaveKeyWithValue(false,
		BeNumerically(">", 10))))
}

// TestStandingOfWhatBegins checks what others depend on between the announcement of a change and its revision.
func TestStandingOfWhatBegins(t *testing.T) {
	g := NewWithT(t)
	p := &v1alpha2.InfrastructureProvider{}
	p.Spec.Version = "v1.1.0"
	g.Expect(StandingOf(p).Installed).To(BeFalse())

	p.Status = Begins(true, 1, "v1.1.0")(p.Status)
	g.Expect(StandingOf(p).Installed).To(BeTrue(), "no other resource installs the provider")
	g.Expect(p.Status.DesiredVersion).To(Equal("v1.1.0"))

	healthy := "v1.0.0"
	p.Status.InstalledVersion = &healthy
	p.Status.History = []v1alpha2.ReleaseRevision{{Number: 1, Version: healthy, Digest: "v1:one", Status: "deployed"}}
	g.Expect(StandingOf(p).MayReturn).To(BeFalse())

	begun := *p.DeepCopy()
	begun.Status = Begins(false, 2, "v1.1.0")(p.Status)
	g.Expect(StandingOf(&begun).MayReturn).To(BeTrue(), "core waits for it")
	g.Expect(NewestVersion(&begun)).To(Equal("v1.1.0"))

	failed := state.Revision{ReleaseRevision: v1alpha2.ReleaseRevision{
		Number: 2, Version: "v1.1.0", Status: v1alpha2.RevisionFailed, Digest: "v1:two",
	}}
	back := state.Revision{ReleaseRevision: v1alpha2.ReleaseRevision{
		Number: 3, Version: healthy, Status: v1alpha2.RevisionPendingRollback, Digest: "v1:three",
	}}
	begun.Status = All(Enters(failed, nil), Enters(back, nil))(p.Status)
	g.Expect(StandingOf(&begun).MayReturn).To(BeTrue(), "it is about to return")

	p.Status = Begins(false, 2, healthy)(p.Status)
	g.Expect(StandingOf(p).MayReturn).To(BeFalse(), "the same version is applied again")
}

// TestBeginsEnds checks that a change which has begun without a revision is over at the end of the reconcile.
func TestBeginsEnds(t *testing.T) {
	g := NewWithT(t)
	in := Input{}
	in.Provider.Status = Begins(true, 1, "v1.0.0")(in.Provider.Status)
	g.Expect(Of(in, Summary{Result: Result{Outcome: Waiting}}).Status.History).To(BeEmpty())

	entered := state.Revision{
		ReleaseRevision: v1alpha2.ReleaseRevision{Number: 1, Status: v1alpha2.RevisionPendingInstall, Digest: "x"},
	}
	in.Provider.Status = Enters(entered, nil)(in.Provider.Status)
	g.Expect(Of(in, Summary{Result: Result{Outcome: Waiting}}).Status.History).To(HaveLen(1), "its record may exist")

	again := Begins(false, 1, "v1.0.0")(in.Provider.Status)
	g.Expect(again.History).To(Equal(in.Provider.Status.History), "its digest is known")
}
