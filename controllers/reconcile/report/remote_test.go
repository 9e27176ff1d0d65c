package report

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/state"
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

func TestRemoteClusterIsLookedAtAgain(t *testing.T) {
	const interval, next = 5 * time.Minute, 3 * time.Minute

	ready := func(at time.Time) Result { return Result{Outcome: Ready, Reason: "Some", At: at} }
	progressing := Result{Outcome: Waiting, Reason: v1alpha2.ProgressingReason, Message: "waiting"}

	for name, test := range map[string]struct {
		result Result
		age    time.Duration
		after  time.Duration
		soon   bool
		asOf   bool
	}{
		"while nothing happens":        {ready(time.Time{}), 0, next, false, true},
		"before the work that follows": {ready(now.Add(time.Hour)), 0, next, false, true},
		"for the work that follows":    {ready(now.Add(time.Second)), 0, time.Second, false, true},
		"while something happens":      {progressing, time.Minute, time.Second, true, false},
		"less often":                   {progressing, 10 * time.Minute, time.Minute, false, true},
		"after a problem":              {retrying, 0, next, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := newInput(revision(1, state.StatusDeployed, wanted))
			in.Remote = Remote{Next: next, Interval: interval}
			in = with(in, v1alpha2.ReadyCondition, test.result.Reason, test.result.Message+", as of 2026-11-24T07:00:00Z",
				metav1.ConditionFalse, test.age)

			report := of(in, test.result)
			g.Expect(report.After).To(Equal(test.after))
			g.Expect(report.Soon).To(Equal(test.soon))

			want := test.result.Message
			if test.asOf {
				want += ", as of 2026-11-24T08:00:00Z"
			}

			g.Expect(report.condition(v1alpha2.ReadyCondition).Message).To(Equal(want))
		})
	}
}

func TestTimeOfTheLastLookIsNoNews(t *testing.T) {
	g := NewWithT(t)
	in := newInput(revision(1, state.StatusDeployed, wanted))
	in.Remote = Remote{Next: time.Minute, Interval: time.Minute}

	first := of(in, Result{Outcome: Ready, Reason: "Some", Message: "as of now, as of old"})
	in.Provider.Status = first.Status
	in.Now = now.Add(time.Hour)

	again := of(in, Result{Outcome: Ready, Reason: "Some", Message: "as of now, as of old"})
	g.Expect(again.Events).To(BeEmpty())
	g.Expect(again.condition(v1alpha2.ReadyCondition)).To(And(
		HaveField("Message", "as of now, as of old, as of 2026-11-24T09:00:00Z"),
		HaveField("LastTransitionTime.Time", now)))
}
