package reconcile

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestPollAfter(t *testing.T) {
	for name, tt := range map[string]struct {
		age, interval, want time.Duration
	}{
		"just begun":                   {0, 5 * time.Minute, time.Second},
		"for a minute":                 {time.Minute, 5 * time.Minute, time.Second},
		"for ten minutes":              {10 * time.Minute, 5 * time.Minute, time.Minute},
		"for hours":                    {5 * time.Hour, 5 * time.Minute, 5 * time.Minute},
		"with an interval of a second": {0, time.Second, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(pollAfter(tt.age, tt.interval)).To(Equal(tt.want))
		})
	}
}

func TestAsOf(t *testing.T) {
	g := NewWithT(t)
	at := time.Date(2026, 11, 23, 22, 14, 5, 0, time.UTC)
	since := metav1.NewTime(at.Add(-time.Hour))
	p := &v1alpha2.InfrastructureProvider{}
	p.Status.Conditions = []metav1.Condition{
		{Type: v1alpha2.ReadyCondition, Message: "a is healthy", LastTransitionTime: since},
		{Type: v1alpha2.StalledCondition, Message: "as of now, as of old"},
	}
	want := p.DeepCopy().Status.Conditions

	writeAsOf(p, at)
	g.Expect(p.Status.Conditions[0]).To(HaveField("Message", "a is healthy, as of 2026-11-23T22:14:05Z"))
	g.Expect(p.Status.Conditions[0].LastTransitionTime).To(Equal(since), "the condition has not changed")

	removeAsOf(p)
	g.Expect(p.Status.Conditions).To(Equal(want))
}
