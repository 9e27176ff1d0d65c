package report

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
)

func TestChangesLeaveTheStatusThatTheyAreGiven(t *testing.T) {
	g := NewWithT(t)
	before := v1alpha2.ProviderStatus{
		AutomaticUpgrade: &v1alpha2.AutomaticUpgradeStatus{Last: &v1alpha2.AutomaticUpgrade{Version: "v1.0.1"}},
		Conditions:       []metav1.Condition{{Type: v1alpha2.StalledCondition}},
	}
	kept := *before.DeepCopy()

	pending := WillUpgrade(&v1alpha2.PendingUpgrade{Version: "v1.0.2"})(before)
	g.Expect(pending.AutomaticUpgrade).To(And(HaveField("Last.Version", "v1.0.1"), HaveField("Pending.Version", "v1.0.2")))

	doing := Doing("reading", true, 1, time.Now())(before)
	g.Expect(doing.Conditions).NotTo(ContainElement(HaveField("Type", v1alpha2.StalledCondition)))
	g.Expect(before).To(Equal(kept))
}

func TestPendingUpgradeEnds(t *testing.T) {
	g := NewWithT(t)
	g.Expect(WillUpgrade(nil)(v1alpha2.ProviderStatus{}).AutomaticUpgrade).To(BeNil())

	pending := WillUpgrade(&v1alpha2.PendingUpgrade{Version: "v1.0.2"})(v1alpha2.ProviderStatus{})
	g.Expect(pending.AutomaticUpgrade.Pending.Version).To(Equal("v1.0.2"))
	g.Expect(WillUpgrade(nil)(pending).AutomaticUpgrade.Pending).To(BeNil())
}

// TestRevisionIsEntered: a record is the resource's only once the status has its digest.
func TestRevisionIsEntered(t *testing.T) {
	g := NewWithT(t)
	objects := []object.Key{{Name: "a"}}
	revision := state.Revision{ReleaseRevision: v1alpha2.ReleaseRevision{
		Number: 3, Status: v1alpha2.RevisionPendingRollback, RollbackTo: 1, Digest: "v1:x",
	}}
	entered := Enters(revision, objects)(
		v1alpha2.ProviderStatus{History: []v1alpha2.ReleaseRevision{{Number: 9}, {Number: 2}}})

	g.Expect(entered.History).To(HaveExactElements(
		revision.ReleaseRevision, v1alpha2.ReleaseRevision{Number: 2},
	), "the records of later revisions are gone")
	g.Expect(entered.Inventory).To(HaveLen(1))

	revision.Status = v1alpha2.RevisionFailed
	ended := Enters(revision, nil)(entered)
	g.Expect(ended.Inventory).To(HaveLen(1))
	g.Expect(ended.History[0]).To(Equal(revision.ReleaseRevision))
}

func TestWhatIsBeingDone(t *testing.T) {
	ready := metav1.Condition{Type: v1alpha2.ReadyCondition, Status: metav1.ConditionTrue, Message: "runs"}

	for name, test := range map[string]struct {
		before []metav1.Condition
		ready  bool
		want   string // message of Ready
	}{
		"at first":                          {nil, true, "reading"},
		"while the provider runs":           {[]metav1.Condition{ready}, true, "runs"},
		"while the provider cannot be used": {[]metav1.Condition{ready}, false, "reading"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			status := Doing("reading", test.ready, 1, now)(v1alpha2.ProviderStatus{Conditions: test.before})
			g.Expect(find(status.Conditions, v1alpha2.ReadyCondition).Message).To(Equal(test.want))
			g.Expect(find(status.Conditions, v1alpha2.ReconcilingCondition)).To(And(
				HaveField("Message", "reading"), HaveField("Reason", v1alpha2.ProgressingReason)))
		})
	}
}
