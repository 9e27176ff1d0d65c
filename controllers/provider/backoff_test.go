package provider

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
)

func TestBackoffGrowsWithASeries(t *testing.T) {
	g := NewWithT(t)
	object, other := object.Key{Name: "contested"}, object.Key{Name: "other"}
	b, now := &backoff{}, time.Now()

	for i := range freeCorrections {
		g.Expect(b.next(object)).NotTo(BeTemporally(">", now), "correction %d", i)
		b.record(object, now, true)
		now = now.Add(time.Second)
	}

	var delays []time.Duration

	for range 9 {
		delays = append(delays, b.next(object).Sub(now).Round(10*time.Second))
		now = b.next(object)
		b.record(object, now, true)
	}

	g.Expect(delays).To(HaveExactElements(
		10*time.Second, 20*time.Second, 40*time.Second, 80*time.Second, 160*time.Second, 320*time.Second,
		state.MaxBackoff, state.MaxBackoff, state.MaxBackoff))

	g.Expect(b.next(other)).NotTo(BeTemporally(">", now), "the other object is not affected")

	now = b.next(object).Add(2 * sameSeries)
	b.record(object, now, true)
	g.Expect(b.next(object)).NotTo(BeTemporally(">", now), "a new series begins after a quiet minute")
}

func TestBackoffAfterAFailedCorrection(t *testing.T) {
	g := NewWithT(t)
	b, now, object := &backoff{}, time.Now(), object.Key{Name: "refused"}

	b.record(object, now, false)
	g.Expect(b.next(object)).To(Equal(now.Add(minDelay)))

	b.record(object, b.next(object), false)
	g.Expect(b.next(object)).To(Equal(now.Add(3 * minDelay)))
}
