package offers

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

func TestProviderIsWokenByAnAnswer(t *testing.T) {
	isNews := func(news bool) func(context.Context, []v1alpha2.AvailableUpgrade) bool {
		return func(_ context.Context, offered []v1alpha2.AvailableUpgrade) bool {
			NewWithT(t).Expect(offered).To(HaveLen(2))

			return news
		}
	}

	for name, tt := range map[string]struct {
		folder string
		isNews func(context.Context, []v1alpha2.AvailableUpgrade) bool
		woken  bool
	}{
		"of any kind":                      {samples, nil, true},
		"that is news":                     {samples, isNews(true), true},
		"but not by what it shows already": {samples, isNews(false), false},
		"but not if there is none":         {"absent", isNews(true), false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			docker := newDocker(tt.folder)

			woken := false
			tracker := NewTracker(newResolver(t), func(string, string, time.Duration) { woken = true })

			g.Expect(tracker.Look(docker, time.Time{})).To(Equal(Known{Pending: true}))

			if tt.isNews != nil {
				tracker.WakeForNews(docker, tt.isNews)
			}

			g.Expect(tracker.next(t.Context())).To(BeTrue())
			g.Expect(woken).To(Equal(tt.woken))
			g.Expect(tracker.Look(docker, time.Time{})).To(HaveField("Pending", BeFalse()))

			woken = false

			tracker.WakeForNews(docker, isNews(false))
			g.Expect(woken).To(BeTrue(), "the answer has come since the provider looked")
		})
	}
}
