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

			g.Expect(tracker.Look(docker, time.Time{})).To(Equal(Answer{Pending: true}))

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

// Lookups for which too many others of the namespace wait are tried again, and hold up none of another namespace.
func TestLookupsTakeSeats(t *testing.T) {
	g := NewWithT(t)
	woken := make(chan string, 2)
	tracker := NewTracker(newResolver(t), func(_, namespace string, _ time.Duration) { woken <- namespace })

	other := newDocker(samples)
	other.Namespace, other.UID = "other", "other"

	var ends []func()

	for range workers / 2 {
		done, err := tracker.seats.Take("capd-system")
		g.Expect(err).NotTo(HaveOccurred())

		ends = append(ends, done)
	}

	tracker.Look(newDocker(samples), time.Time{})
	g.Expect(tracker.next(t.Context())).To(BeTrue())
	g.Expect(tracker.Look(newDocker(samples), time.Time{})).To(HaveField("Pending", BeTrue()))
	g.Expect(woken).NotTo(Receive())

	ends[0]()
	tracker.Look(other, time.Time{})
	g.Expect(tracker.next(t.Context())).To(BeTrue())
	g.Expect(woken).To(Receive(Equal("other")))

	g.Expect(tracker.next(t.Context())).To(BeTrue(), "waits for the lookup to come again")
	g.Expect(woken).To(Receive(Equal("capd-system")))
}
