package reconcile

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestWarn(t *testing.T) {
	g := NewWithT(t)
	recorder := events.NewFakeRecorder(2)
	r := &Reconciler{Dependencies: &Dependencies{Events: recorder}}

	r.warn(&v1alpha2.CoreProvider{}, "Ignored", "Reconcile")
	g.Expect(recorder.Events).To(BeEmpty(), "nothing to warn of")

	r.warn(&v1alpha2.CoreProvider{}, "Ignored", "Reconcile", "one is ignored", "two is ignored")
	g.Expect(recorder.Events).To(HaveLen(1))
	g.Expect(<-recorder.Events).To(Equal("Warning Ignored one is ignored; two is ignored"))

	r.warn(&v1alpha2.CoreProvider{}, "Ignored", "Reconcile", strings.Repeat("x", 2000))
	g.Expect(len(<-recorder.Events)).To(BeNumerically("<=", 1024+len("Warning Ignored ")))
}

func TestAnnounce(t *testing.T) {
	ready := func(status metav1.ConditionStatus, reason, message string) *metav1.Condition {
		return &metav1.Condition{Type: v1alpha2.ReadyCondition, Status: status, Reason: reason, Message: message}
	}

	const progressing = v1alpha2.ProgressingReason

	for name, c := range map[string]struct {
		before, now *metav1.Condition
		want        string // event; empty for none
	}{
		"becomes ready": {
			ready("False", progressing, "waiting"), ready("True", "Succeeded", "installed"), "Normal Succeeded installed",
		},
		"stays ready":             {ready("True", "Succeeded", "ok"), ready("True", "Succeeded", "ok"), ""},
		"begins to progress":      {nil, ready("False", progressing, "waiting"), ""},
		"progresses after a wait": {ready("False", "Waiting", "for core"), ready("False", progressing, "waiting"), ""},
		"says more while it progresses": {
			ready("False", progressing, "waiting"), ready("False", progressing, "ImagePullBackOff"),
			"Normal Progressing ImagePullBackOff",
		},
		"is no longer ready": {
			ready("True", "Succeeded", "ok"), ready("False", progressing, "a pod crashes"), "Normal Progressing a pod crashes",
		},
		"waits for core": {nil, ready("False", "Waiting", "for core"), "Normal Waiting for core"},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(1)
			r := &Reconciler{Dependencies: &Dependencies{Events: recorder}}
			p := &v1alpha2.CoreProvider{}
			p.Status.Conditions = []metav1.Condition{*c.now}

			r.announce(p, c.before)
			close(recorder.Events)
			NewWithT(t).Expect(<-recorder.Events).To(Equal(c.want))
		})
	}
}
