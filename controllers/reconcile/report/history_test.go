package report

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// TestKnown follows a revision from its announcement on: a process that is killed in between knows what its predecessor
// has written.
func TestKnown(t *testing.T) {
	g := NewWithT(t)
	asked := state.Request{UID: "uid", Generation: 2, RequestedAt: "noon", Automatic: "v1.0.1"}
	status := v1alpha2.ProviderStatus{History: []v1alpha2.ReleaseRevision{{Revision: 1, Healthy: new(true)}}}

	_, known := Known(&status, 1, "v1:one")
	g.Expect(known).To(BeFalse(), "its digest is not known")

	status = Announces(state.Announcement{
		Revision: 2, Digest: "v1:two", Status: state.StatusPendingUpgrade, Request: asked, Staged: true, Wave: 3,
	})(status)
	want := state.Revision{Request: asked, Staged: true, Wave: 3}

	for _, digest := range []string{"v1:two", ""} {
		revision, known := Known(&status, 2, digest)
		g.Expect(known).To(BeTrue())
		g.Expect(revision).To(Equal(want))
	}

	status = Announces(state.Announcement{
		Revision: 2, Digest: "v1:two", Status: state.StatusFailed, Failure: state.FailureUnavailable,
	})(status)
	want.Status, want.Failure = state.StatusFailed, state.FailureUnavailable

	g.Expect(status.Announced).To(BeNil())
	g.Expect(status.History).To(HaveExactElements(HaveField("Revision", int64(2)), HaveField("Revision", int64(1))))

	revision, _ := Known(&status, 2, "v1:two")
	g.Expect(revision).To(Equal(want))

	// The attempt is resumed: the revision is written again.
	again := state.Announcement{Revision: 2, Digest: "v1:again", Status: state.StatusPendingUpgrade, Request: asked}
	status = Announces(again)(status)
	revision, _ = Known(&status, 2, "v1:again")
	g.Expect(revision).To(Equal(state.Revision{Request: asked}))

	revision, _ = Known(&status, 2, "v1:two")
	g.Expect(revision.Failure).To(Equal(state.FailureUnavailable), "the record was not written yet")

	again.Status = state.StatusDeployed
	status = Announces(again)(status)
	revision, _ = Known(&status, 2, "v1:again")
	g.Expect(revision).To(Equal(state.Revision{Status: state.StatusDeployed, Request: asked}))

	revision.Number, revision.Healthy, revision.FinishedJobs = 2, true, []string{"x"}
	status = Marks(revision, "v1:again")(status)
	marked, _ := Known(&status, 2, "")
	revision.Number = 0
	g.Expect(marked).To(Equal(revision))

	g.Expect(Marks(state.Revision{Number: 1, Healthy: true}, "v1:one")(status)).To(Equal(status), "it is not known")
}

// TestFormerIsKnown: a revision whose result the status does not have when the next one is announced stays known.
func TestFormerIsKnown(t *testing.T) {
	g := NewWithT(t)
	asked := state.Request{UID: "uid", Generation: 2}
	status := v1alpha2.ProviderStatus{}

	status = Announces(state.Announcement{
		Revision: 1, Digest: "v1:one", Status: state.StatusPendingInstall, Request: asked,
	})(status)
	status = Announces(state.Announcement{Revision: 2, Digest: "v1:two", Status: state.StatusPendingUpgrade})(status)

	former, known := Known(&status, 1, "")
	g.Expect(known).To(BeTrue())
	g.Expect(former).To(Equal(state.Revision{Request: asked}))
	g.Expect(status.Announced.Digest).To(Equal("v1:two"))
}

// TestTransitions: the time of a status and a wave is entered once, whatever the record says later. Only a resumed
// attempt keeps the time at which it was created.
func TestTransitions(t *testing.T) {
	g := NewWithT(t)
	created, applied, failed := time.Unix(100, 0), time.Unix(200, 0), time.Unix(300, 0)
	status := v1alpha2.ProviderStatus{History: []v1alpha2.ReleaseRevision{
		{Revision: 2, Digest: "v1:former", Status: "failed", Failure: "Rejected", Time: metav1.NewTime(applied)},
	}}
	times := func(digest string) [2]time.Time {
		revision, known := Known(&status, 2, digest)
		g.Expect(known).To(BeTrue())

		return [2]time.Time{revision.Created, revision.Changed}
	}
	begin := func(digest string) {
		status = Announces(state.Announcement{Revision: 2, Digest: digest, Status: state.StatusPendingUpgrade})(status)
	}

	begin("v1:two")
	g.Expect(times("v1:two")).To(HaveEach(BeZero()), "it is not the one whose record was lost")

	status = Marks(state.Revision{Number: 2, Status: state.StatusDeployed, Created: created, Changed: applied},
		"v1:two")(status)
	g.Expect(times("v1:two")).To(HaveExactElements(created, applied))

	fail := func(digest string, reason state.Failure) {
		status = Announces(state.Announcement{
			Revision: 2, Digest: digest, Status: state.StatusFailed, Failure: reason,
		})(status)
	}

	fail("v1:two", state.FailureUnavailable)
	g.Expect(times("v1:two")).To(HaveExactElements(Equal(created), BeZero()), "its record is about to be written")

	status = Marks(state.Revision{
		Number: 2, Status: state.StatusFailed, Failure: state.FailureUnavailable, Created: created, Changed: failed,
	}, "v1:two")(status)

	begin("v1:again")
	g.Expect(times("v1:again")).To(HaveExactElements(Equal(created), BeZero()))
	g.Expect(times("v1:two")).To(HaveExactElements(created, failed))

	fail("v1:again", state.FailureUnavailable)
	g.Expect(times("v1:again")).To(HaveExactElements(Equal(created), BeZero()))
}

// TestHistoryHasMarks: what is known is entered for revisions with a digest only. What others claim is not.
func TestHistoryHasMarks(t *testing.T) {
	g := NewWithT(t)
	known := state.KnownDigests([]string{"v1:two"})
	installed := Installed{
		Record: Record{Readable: true, Digest: "v1:two"},
		History: state.History{Revisions: []state.Revision{
			{Number: 2, Status: state.StatusDeployed, Known: known, Staged: true, Wave: 3},
			{Number: 1, Status: state.StatusSuperseded, Healthy: true},
		}},
	}
	installed.Revision = installed.History.Revisions[0]

	g.Expect(history(installed, nil)).To(HaveExactElements(
		And(
			HaveField("Digest", "v1:two"), HaveField("Healthy", HaveValue(BeFalse())),
			HaveField("Wave", HaveValue(Equal(int32(3)))),
		),
		And(HaveField("Digest", ""), HaveField("Healthy", BeNil())),
	))
}
