package controllers

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
)

func TestWhatFollowsDrift(t *testing.T) {
	of := func(policy v1alpha2.DriftPolicy) *v1alpha2.ReleaseSpec { return &v1alpha2.ReleaseSpec{Drift: policy} }
	for name, test := range map[string]struct {
		spec     v1alpha2.ProviderSpec
		expected v1alpha2.DriftPolicy
	}{
		"nothing said":             {v1alpha2.ProviderSpec{}, v1alpha2.DriftCorrect},
		"nothing said of drift":    {v1alpha2.ProviderSpec{Release: of("")}, v1alpha2.DriftCorrect},
		"Correct":                  {v1alpha2.ProviderSpec{Release: of(v1alpha2.DriftCorrect)}, v1alpha2.DriftCorrect},
		"Warn":                     {v1alpha2.ProviderSpec{Release: of(v1alpha2.DriftWarn)}, v1alpha2.DriftWarn},
		"Off":                      {v1alpha2.ProviderSpec{Release: of(v1alpha2.DriftOff)}, v1alpha2.DriftOff},
		"suspended":                {v1alpha2.ProviderSpec{Suspend: true}, v1alpha2.DriftWarn},
		"suspended, Correct":       {v1alpha2.ProviderSpec{Suspend: true, Release: of(v1alpha2.DriftCorrect)}, v1alpha2.DriftWarn},
		"suspended, and Off is so": {v1alpha2.ProviderSpec{Suspend: true, Release: of(v1alpha2.DriftOff)}, v1alpha2.DriftOff},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(driftPolicy(&test.spec)).To(Equal(test.expected))
		})
	}
}

func TestWhoeverInsistsIsCorrectedLessAndLessOften(t *testing.T) {
	g := NewWithT(t)
	object, other := object.Key{Name: "fought over"}, object.Key{Name: "other"}

	c, now := &corrections{}, time.Now()
	for i := range freeCorrections {
		g.Expect(c.next(object)).NotTo(BeTemporally(">", now), "correction %d", i)
		c.note(object, now, true)
		now = now.Add(time.Second)
	}

	var waits []time.Duration
	for range 9 {
		waits = append(waits, c.next(object).Sub(now).Round(10*time.Second))
		now = c.next(object)
		c.note(object, now, true)
	}

	g.Expect(waits).
		To(HaveExactElements(10*time.Second, 20*time.Second, 40*time.Second, 80*time.Second, 160*time.Second, 320*time.Second,
			longestRetry, longestRetry, longestRetry))
	g.Expect(c.next(other)).NotTo(BeTemporally(">", now), "others are not concerned")

	now = c.next(object).Add(2 * inARow)
	c.note(object, now, true)
	g.Expect(c.next(object)).NotTo(BeTemporally(">", now), "after a while of peace a new row begins")
}

func TestWhatCouldNotBeCorrectedIsNotTriedAgainAtOnce(t *testing.T) {
	g := NewWithT(t)
	c, now, object := &corrections{}, time.Now(), object.Key{Name: "refused"}
	c.note(object, now, false)
	g.Expect(c.next(object)).To(Equal(now.Add(shortestTruce)))
	c.note(object, c.next(object), false)
	g.Expect(c.next(object)).To(Equal(now.Add(3 * shortestTruce)))
}

func TestManyThingsAreNamedInPart(t *testing.T) {
	g := NewWithT(t)
	g.Expect(enumerate([]string{"a", "b"})).To(Equal("a; b"))
	g.Expect(enumerate([]string{"a", "b", "c", "d", "e", "f", "g"})).To(Equal("a; b; c; d; e; and 2 more"))
}
