package reconcile

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestWaitingSince(t *testing.T) {
	g := NewWithT(t)
	now := time.Now().Truncate(time.Second)
	before := now.Add(-time.Hour)
	condition := func(name, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: name, Reason: reason, LastTransitionTime: metav1.NewTime(before)}}
	}

	g.Expect(waitingSince(nil, "A", now)).To(Equal(now))
	g.Expect(waitingSince(condition(v1alpha2.ReconcilingCondition, "A"), "A", now)).To(Equal(before))
	g.Expect(waitingSince(condition(v1alpha2.StalledCondition, "A"), "A", now)).To(Equal(before))
	g.Expect(waitingSince(condition(v1alpha2.ReconcilingCondition, "B"), "A", now)).To(Equal(now))
	g.Expect(waitingSince(condition(v1alpha2.ReadyCondition, "A"), "A", now)).To(Equal(now))
}

func TestKeepWaitingSince(t *testing.T) {
	g := NewWithT(t)
	since := time.Now().Add(-time.Hour).Truncate(time.Second)
	conditions := []metav1.Condition{{Type: v1alpha2.ReadyCondition}, {Type: v1alpha2.StalledCondition}}

	keepWaitingSince(conditions, since)
	g.Expect(conditions[0].LastTransitionTime.IsZero()).To(BeTrue())
	g.Expect(conditions[1].LastTransitionTime.Time).To(Equal(since))
}
