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
	status := v1alpha2.ProviderStatus{History: []v1alpha2.ReleaseRevision{{Revision: 1, Healthy: new(true)}}}
	expect := func(want state.Revision, digest string) {
		t.Helper()

		revision, found := Known(&status, want.Number)
		g.Expect(found).To(Equal(digest))
		g.Expect(revision).To(Equal(want))
	}

	_, digest := Known(&status, 1)
	g.Expect(digest).To(BeEmpty(), "its digest is not known")

	want := state.Revision{
		Number: 2, Status: state.StatusPendingUpgrade, Digest: "v1-x", Version: "v1.0.0", ChartDigest: "sha256:0",
		Paused: true, Staged: true, Wave: 3, RollbackTo: 1, AdoptedVersion: "v0.9.0",
		Request: state.Request{UID: "uid", Generation: 2, RequestedAt: "noon", Automatic: "v1.0.1"},
		Basis: state.Basis{
			Variables: "a", Manifests: "b", Source: "c", ImageRegistry: "d", ImageOverrides: "e", Managers: "f",
		},
	}
	status = Enters(want, "v1:two", nil)(status)
	expect(want, "v1:two")

	want.Status, want.Failure = state.StatusFailed, state.FailureUnavailable
	status = Enters(want, "v1:two", nil)(status)
	expect(want, "v1:two")

	// The attempt is resumed: the revision is written again.
	want.Status, want.Failure = state.StatusPendingUpgrade, ""
	status = Enters(want, "v1:again", nil)(status)
	expect(want, "v1:again")

	status = Adopts(2, 4)(status)
	want.Adopted = 4
	expect(want, "v1:again")

	want.Status, want.Healthy, want.FinishedJobs = state.StatusDeployed, true, []string{"x"}
	status = Marks(want, "v1:again")(status)
	expect(want, "v1:again")

	g.Expect(Marks(state.Revision{Number: 1, Healthy: true}, "v1:one")(status)).To(Equal(status), "it is not known")
	g.Expect(Adopts(1, 4)(status)).To(Equal(status), "it is not known")
}

// TestLast: a revision that was only entered may not exist.
func TestLast(t *testing.T) {
	g := NewWithT(t)
	status := v1alpha2.ProviderStatus{}
	g.Expect(Last(&status)).To(BeZero())

	status.History = []v1alpha2.ReleaseRevision{
		{Revision: 4, Status: "deployed"},
		{Revision: 3, Digest: "v1:three", Status: "pending-upgrade"},
		{Revision: 2, Digest: "v1:two", Status: "deployed"},
	}
	g.Expect(Last(&status)).To(Equal(2))
}

// TestTransitions: the time of a status and a wave is entered once, whatever the record says later. Only a resumed
// attempt keeps the time at which it was created.
func TestTransitions(t *testing.T) {
	g := NewWithT(t)
	created, applied, failed := time.Unix(100, 0), time.Unix(200, 0), time.Unix(300, 0)
	status := v1alpha2.ProviderStatus{History: []v1alpha2.ReleaseRevision{
		{Revision: 2, Digest: "v1:former", Status: "failed", Failure: "Rejected", Time: metav1.NewTime(applied)},
	}}
	times := func() [2]time.Time {
		revision, _ := Known(&status, 2)
		return [2]time.Time{revision.Created, revision.Changed}
	}
	enters := func(entered state.Status, failure state.Failure) {
		revision := state.Revision{Number: 2, Status: entered, Failure: failure, Created: failed, Changed: failed}
		status = Enters(revision, "v1:two", nil)(status)
	}

	enters(state.StatusPendingUpgrade, "")
	g.Expect(times()).To(HaveEach(BeZero()), "it is not the one whose record was lost")

	status = Marks(state.Revision{Number: 2, Status: state.StatusDeployed, Created: created, Changed: applied},
		"v1:two")(status)
	g.Expect(times()).To(HaveExactElements(created, applied))

	enters(state.StatusFailed, state.FailureUnavailable)
	g.Expect(times()).To(HaveExactElements(Equal(created), BeZero()), "its record is about to be written")

	enters(state.StatusPendingUpgrade, "")
	g.Expect(times()).To(HaveExactElements(Equal(created), BeZero()))
}

// TestHistory: what is known is entered for revisions with a digest only, and what was entered stays until its record
// exists, or is another one.
func TestHistory(t *testing.T) {
	known := "v1:two"
	newest := state.Revision{
		Number: 2, Status: state.StatusDeployed, Digest: "v1-x", RecordDigest: known, Staged: true, Wave: 3,
	}
	planted := state.Revision{Number: 2, Status: state.StatusDeployed}
	older := state.Revision{Number: 1, Status: state.StatusSuperseded, Healthy: true}

	pending := v1alpha2.ReleaseRevision{Revision: 3, Digest: "v1:three", Status: "pending-upgrade"}
	before := v1alpha2.ReleaseRevision{Revision: 2, Digest: "v1:two", Status: "pending-upgrade", ContentDigest: "v1-x"}
	first := v1alpha2.ReleaseRevision{Revision: 1, Digest: "v1:one", Status: "deployed"}

	confirmed := older
	confirmed.RecordDigest = "v1:one"

	entered := And(
		HaveField("Digest", "v1:two"), HaveField("Healthy", HaveValue(BeFalse())), HaveField("Status", "deployed"),
		HaveField("Wave", HaveValue(Equal(int32(3)))), HaveField("ContentDigest", "v1-x"),
	)
	bare := And(HaveField("Digest", ""), HaveField("Healthy", BeNil()), HaveField("Status", "superseded"))

	type entries = []v1alpha2.ReleaseRevision

	for name, c := range map[string]struct {
		newest, older state.Revision
		before        []v1alpha2.ReleaseRevision
		want          []any
	}{
		"one that is not known": {newest, older, nil, []any{entered, bare}},
		"one that is": {
			newest, confirmed, entries{before, first}, []any{entered, HaveField("Healthy", HaveValue(BeTrue()))},
		},
		"one that was only entered": {newest, older, entries{pending, before}, []any{Equal(pending), entered, bare}},
		"another one in its place":  {planted, older, entries{before}, []any{Equal(before), bare}},
		"another one in place of an older revision": {
			newest, older, entries{before, first}, []any{entered, bare},
		},
	} {
		t.Run(name, func(t *testing.T) {
			installed := Installed{
				Record: Record{Readable: true, Digest: "v1:two"}, Revision: c.newest,
				History: state.History{Revisions: []state.Revision{c.newest, c.older}},
			}

			NewWithT(t).Expect(history(installed, c.before)).To(HaveExactElements(c.want...))
		})
	}
}
