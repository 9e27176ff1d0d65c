package report

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// TestKnown follows a revision from its entry on: a process that is killed in between knows what its predecessor has
// written.
func TestKnown(t *testing.T) {
	g := NewWithT(t)
	status := v1alpha2.ProviderStatus{History: []v1alpha2.ReleaseRevision{{Number: 1, Healthy: true}}}
	expect := func(want state.Revision) {
		t.Helper()

		known, exists := Known(&status, want.Number)
		g.Expect(exists).To(BeTrue())
		g.Expect(known).To(Equal(want.ReleaseRevision))
	}

	_, exists := Known(&status, 1)
	g.Expect(exists).To(BeFalse(), "its digest is not known")

	want := state.Revision{ReleaseRevision: v1alpha2.ReleaseRevision{
		Number: 2, Status: v1alpha2.RevisionPendingUpgrade, Digest: "v1:two", Version: "v1.0.0", RollbackTo: 1,
	}}
	status = Enters(want, nil)(status)
	expect(want)

	want.Status, want.Failure = v1alpha2.RevisionFailed, v1alpha2.FailureUnavailable
	status = Enters(want, nil)(status)
	expect(want)

	// The attempt is resumed: the revision is written again.
	want.Status, want.Failure, want.Digest = v1alpha2.RevisionPendingUpgrade, "", "v1:again"
	status = Enters(want, nil)(status)
	expect(want)

	status = Adopts(2, 4)(status)
	want.Adopted = 4
	expect(want)

	want.Status, want.Healthy, want.FinishedJobs = v1alpha2.RevisionDeployed, true, []string{"x"}
	status = Marks(want)(status)
	expect(want)

	unknown := state.Revision{ReleaseRevision: v1alpha2.ReleaseRevision{Number: 1, Digest: "v1:one", Healthy: true}}
	g.Expect(Marks(unknown)(status)).To(Equal(status), "it is not known")
	g.Expect(Adopts(1, 4)(status)).To(Equal(status), "it is not known")
}

// TestLast: a revision that was only entered may not exist.
func TestLast(t *testing.T) {
	g := NewWithT(t)
	status := v1alpha2.ProviderStatus{}
	g.Expect(Last(&status)).To(BeZero())

	status.History = []v1alpha2.ReleaseRevision{
		{Number: 4, Status: "deployed"},
		{Number: 3, Digest: "v1:three", Status: "pending-upgrade"},
		{Number: 2, Digest: "v1:two", Status: "deployed"},
	}
	g.Expect(Last(&status)).To(Equal(2))
}

// TestTransitions: the time of a status and a wave is entered once, whatever the record says later. Only a resumed
// attempt keeps the time at which it was created.
func TestTransitions(t *testing.T) {
	g := NewWithT(t)
	created, applied, failed := time.Unix(100, 0), time.Unix(200, 0), time.Unix(300, 0)
	status := v1alpha2.ProviderStatus{History: []v1alpha2.ReleaseRevision{
		{Number: 2, Digest: "v1:former", Status: "failed", Failure: "Rejected", Time: metav1.NewTime(applied)},
	}}
	times := func() [2]time.Time {
		revision, _ := Known(&status, 2)
		return [2]time.Time{revision.Time.Time, revision.LastTransitionTime.Time}
	}
	enters := func(entered v1alpha2.RevisionStatus, failure v1alpha2.RevisionFailure) {
		revision := state.Revision{ReleaseRevision: v1alpha2.ReleaseRevision{
			Number: 2, Digest: "v1:two", Status: entered, Failure: failure,
			Time: metav1.NewTime(failed), LastTransitionTime: metav1.NewTime(failed),
		}}
		status = Enters(revision, nil)(status)
	}

	enters(v1alpha2.RevisionPendingUpgrade, "")
	g.Expect(times()).To(HaveEach(BeZero()), "it is not the one whose record was lost")

	status = Marks(state.Revision{ReleaseRevision: v1alpha2.ReleaseRevision{
		Number: 2, Digest: "v1:two", Status: v1alpha2.RevisionDeployed,
		Time: metav1.NewTime(created), LastTransitionTime: metav1.NewTime(applied),
	}})(status)
	g.Expect(times()).To(HaveExactElements(created, applied))

	enters(v1alpha2.RevisionFailed, v1alpha2.FailureUnavailable)
	g.Expect(times()).To(HaveExactElements(Equal(created), BeZero()), "its record is about to be written")

	enters(v1alpha2.RevisionPendingUpgrade, "")
	g.Expect(times()).To(HaveExactElements(Equal(created), BeZero()))
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
			installed := Installed{
				Record: Record{Readable: true}, Revision: c.newest,
				History: state.History{Revisions: []state.Revision{c.newest, c.older}},
			}

			NewWithT(t).Expect(history(installed, c.before)).To(HaveExactElements(c.want...))
		})
	}
}
