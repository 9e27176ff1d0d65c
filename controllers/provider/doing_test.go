package provider

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestPendingUpgradeEnds(t *testing.T) {
	g := NewWithT(t)
	r := newTestRun()
	status := r.provider.GetStatus()

	r.noteUpgrade(nil)
	g.Expect(status.AutomaticUpgrade).To(BeNil())

	r.noteUpgrade(&v1alpha2.PendingUpgrade{Version: "v1.0.2"})
	g.Expect(status.AutomaticUpgrade.Pending.Version).To(Equal("v1.0.2"))

	r.noteUpgrade(nil)
	g.Expect(status.AutomaticUpgrade.Pending).To(BeNil())
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

			p := &v1alpha2.CoreProvider{}
			p.Status.Conditions = test.before
			markDoing(p, "reading", test.ready, now)
			g.Expect(v1alpha2.FindCondition(p.Status.Conditions, v1alpha2.ReadyCondition).Message).To(Equal(test.want))
			g.Expect(v1alpha2.FindCondition(p.Status.Conditions, v1alpha2.ReconcilingCondition)).To(And(
				HaveField("Message", "reading"), HaveField("Reason", v1alpha2.ProgressingReason)))
		})
	}
}
