package state

import (
	"slices"
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

	other := want
	other.Digest, other.Healthy = "v1:other", false
	Mark(&status, other)
	g.Expect(status).To(Equal(before), "another program has replaced its record")
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

// revisionOf returns a revision as it is stored, with the number that the label of its record has.
func revisionOf(number, origin int) Revision {
	return Revision{ReleaseRevision: v1alpha2.ReleaseRevision{Number: number}, Origin: origin}
}

// TestConfirm: only digests that the status has tell that a revision is the resource's.
func TestConfirm(t *testing.T) {
	self := Owner{Resource: "uid", Home: "berlin", Cluster: "berlin"}
	another := Owner{Resource: "another", Home: "berlin", Cluster: "berlin"}
	copied := self // any writer of Secrets can read a record, and copy it

	knows := func(number int, digest string) func(*v1alpha2.ProviderStatus) {
		return func(status *v1alpha2.ProviderStatus) {
			entry := v1alpha2.ReleaseRevision{Number: number, Digest: digest}
			status.History = slices.Insert(status.History, 0, entry)
		}
	}
	enters := func(number int, digest string) func(*v1alpha2.ProviderStatus) {
		return func(status *v1alpha2.ProviderStatus) {
			revision := Revision{
				ReleaseRevision: v1alpha2.ReleaseRevision{
					Number: number, Status: v1alpha2.RevisionPendingUpgrade, Digest: digest,
				},
			}
			Enter(status, revision)
		}
	}
	begins := func(status *v1alpha2.ProviderStatus) { Begin(status, false, 2, "v1.0.0") }
	all := func(changes ...func(*v1alpha2.ProviderStatus)) func(*v1alpha2.ProviderStatus) {
		return func(status *v1alpha2.ProviderStatus) {
			for _, change := range changes {
				change(status)
			}
		}
	}

	for name, c := range map[string]struct {
		owner  Owner
		change func(*v1alpha2.ProviderStatus)
		want   bool
	}{
		"a revision that the resource has installed":         {copied, knows(2, "v1:two"), true},
		"one that the resource has begun to install":         {copied, enters(2, "v1:two"), true},
		"one before another one that was only entered":       {copied, all(knows(2, "v1:two"), enters(3, "v1:x")), true},
		"one before that, while CRDs are applied":            {copied, begins, false},
		"one that is written again":                          {copied, all(knows(2, "v1:old"), enters(2, "v1:two")), true},
		"one after a restore, in a resource with its status": {another, knows(2, "v1:two"), true},
		"one that was planted, or changed in place":          {copied, knows(2, "v1:other"), false},
		"one that was planted after the last one":            {copied, knows(1, "v1:two"), false},
		"one of a status without digests":                    {copied, knows(2, ""), false},
		"one of a resource that has lost its status":         {copied, all(), false},
		"one in another cluster":                             {Owner{Cluster: "bonn"}, knows(2, "v1:two"), false},
		"one in a cluster whose UID was not readable":        {Owner{Resource: "x"}, knows(2, "v1:two"), true},
		"one whose successors were deleted":                  {copied, all(knows(2, "v1:two"), knows(3, "v1:x")), false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			status := &v1alpha2.ProviderStatus{}
			c.change(status)

			history := History{Revisions: []Revision{revisionOf(2, 0), revisionOf(1, 0)}}.Confirm(status)
			history.ConfirmNewest(status, self, "v1:two", c.owner)

			newest := history.Revisions[0]
			g.Expect(newest.Confirmed()).To(Equal(c.want))
			g.Expect(newest.Confirms("v1:two")).To(Equal(c.want))
			g.Expect(newest.Confirms("v1:x")).To(BeFalse(), "a record that replaces the one that was read")
		})
	}
}

// TestKnownRevisions: what the status knows of a revision counts, whatever its record says.
func TestKnownRevisions(t *testing.T) {
	g := NewWithT(t)
	status := &v1alpha2.ProviderStatus{History: []v1alpha2.ReleaseRevision{
		{Number: 4, Digest: "v1:four", Status: "deployed", ContentDigest: "v1-x"},
		{Number: 3, Digest: "v1:three", Status: "pending-upgrade", ContentDigest: "v1-x"},
		{Number: 2, Digest: "v1:two", Healthy: true, Version: "v1.0.0"},
		{Number: 1},
	}}

	stored := func(number, origin int) Revision {
		return Revision{
			ReleaseRevision: v1alpha2.ReleaseRevision{Number: number, Status: v1alpha2.RevisionFailed},
			Origin:          origin,
		}
	}
	revisions := []Revision{stored(4, 4), stored(3, 2), stored(2, 2), stored(1, 1)}
	history := History{Revisions: slices.Clone(revisions)}.Confirm(status)
	history.ConfirmNewest(status, Owner{}, "v1:four", Owner{})

	g.Expect(history.Revisions[0]).To(And(
		HaveField("Status", v1alpha2.RevisionDeployed), HaveField("ContentDigest", "v1-x")))
	g.Expect(history.Revisions[1]).To(Equal(stored(3, 2)), "another program has made it in place of one that was entered")
	g.Expect(history.Revisions[2]).To(And(HaveField("Healthy", true), HaveField("Failure", v1alpha2.FailureInterrupted)))
	g.Expect(history.Revisions[3]).To(Equal(stored(1, 1)), "it is shown, and never acted on")

	shown := History{Revisions: revisions}.Show(status)
	g.Expect(shown.Revisions[0].ContentDigest).To(Equal("v1-x"))
	g.Expect(shown.Revisions[1]).To(Equal(stored(3, 2)))
	g.Expect(shown.Revisions[2].Version).To(Equal("v1.0.0"))
}
