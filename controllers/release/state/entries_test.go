package state

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// TestKnown follows a revision from its entry on: a process that is killed in between knows what its predecessor has
// written.
func TestKnown(t *testing.T) {
	g := NewWithT(t)
	status := v1alpha2.ProviderStatus{History: []v1alpha2.ReleaseRevision{{Number: 1, Healthy: true}}}
	expect := func(want Revision) {
		t.Helper()

		known, exists := Known(&status, want.Number)
		g.Expect(exists).To(BeTrue())
		g.Expect(known).To(Equal(want.ReleaseRevision))
	}

	_, exists := Known(&status, 1)
	g.Expect(exists).To(BeFalse(), "its digest is not known")

	want := Revision{ReleaseRevision: v1alpha2.ReleaseRevision{
		Number: 2, Status: v1alpha2.RevisionPendingUpgrade, Digest: "v1:two", Version: "v1.0.0", RollbackTo: 1,
	}}
	Enter(&status, want)
	expect(want)

	want.Status, want.Failure = v1alpha2.RevisionFailed, v1alpha2.FailureUnavailable
	Enter(&status, want)
	expect(want)

	// The attempt is resumed: the revision is written again.
	want.Status, want.Failure, want.Digest = v1alpha2.RevisionPendingUpgrade, "", "v1:again"
	Enter(&status, want)
	expect(want)

	Adopt(&status, 2, 4)
	want.Adopted = 4
	expect(want)

	want.Status, want.Healthy, want.FinishedJobs = v1alpha2.RevisionDeployed, true, []string{"x"}
	Mark(&status, want)
	expect(want)

	unknown := Revision{ReleaseRevision: v1alpha2.ReleaseRevision{Number: 1, Digest: "v1:one", Healthy: true}}

	before := *status.DeepCopy()
	Mark(&status, unknown)
	Adopt(&status, 1, 4)
	g.Expect(status).To(Equal(before), "it is not known")
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
		revision := Revision{ReleaseRevision: v1alpha2.ReleaseRevision{
			Number: 2, Digest: "v1:two", Status: entered, Failure: failure,
			Time: metav1.NewTime(failed), LastTransitionTime: metav1.NewTime(failed),
		}}
		Enter(&status, revision)
	}

	enters(v1alpha2.RevisionPendingUpgrade, "")
	g.Expect(times()).To(HaveEach(BeZero()), "it is not the one whose record was lost")

	Mark(&status, Revision{ReleaseRevision: v1alpha2.ReleaseRevision{
		Number: 2, Digest: "v1:two", Status: v1alpha2.RevisionDeployed,
		Time: metav1.NewTime(created), LastTransitionTime: metav1.NewTime(applied),
	}})
	g.Expect(times()).To(HaveExactElements(created, applied))

	enters(v1alpha2.RevisionFailed, v1alpha2.FailureUnavailable)
	g.Expect(times()).To(HaveExactElements(Equal(created), BeZero()), "its record is about to be written")

	enters(v1alpha2.RevisionPendingUpgrade, "")
	g.Expect(times()).To(HaveExactElements(Equal(created), BeZero()))
}

// TestRevisionIsEntered: a record is the resource's only once the status has its digest.
func TestRevisionIsEntered(t *testing.T) {
	g := NewWithT(t)
	revision := Revision{ReleaseRevision: v1alpha2.ReleaseRevision{
		Number: 3, Status: v1alpha2.RevisionPendingRollback, RollbackTo: 1, Digest: "v1:x",
	}}
	status := v1alpha2.ProviderStatus{History: []v1alpha2.ReleaseRevision{{Number: 9}, {Number: 2}}}

	Enter(&status, revision)
	g.Expect(status.History).To(HaveExactElements(
		revision.ReleaseRevision, v1alpha2.ReleaseRevision{Number: 2},
	), "the records of later revisions are gone")

	revision.Status = v1alpha2.RevisionFailed
	Enter(&status, revision)
	g.Expect(status.History[0]).To(Equal(revision.ReleaseRevision))
}
