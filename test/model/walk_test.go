package model

import (
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

// awaited are the properties that the operator does not have yet. A walk that finds one violated ends.
var awaited = []Property{Asked, Passing, Clock, Fenced}

// isAwaited reports whether an error is about a property that the operator does not have yet.
func isAwaited(err error) bool {
	v := new(Violation)
	return errors.As(err, &v) && slices.Contains(awaited, v.Property)
}

// TestRandomWalks takes more than a million random steps, the same each time. The flag -rapid.seed selects
// others. Of a walk that fails, rapid shows the shortest one that fails in the same way.
func TestRandomWalks(t *testing.T) {
	g := NewWithT(t)

	const length = 100

	for name, value := range map[string]string{
		"rapid.checks": "40000", "rapid.nofailfile": "true", "rapid.seed": "1",
	} {
		if option := flag.Lookup(name); option.Value.String() == option.DefValue {
			g.Expect(flag.Set(name, value)).To(Succeed())
		}
	}

	steps := 0
	step := rapid.Custom(func(t *rapid.T) Step {
		return Choose(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") })
	})

	rapid.Check(t, func(t *rapid.T) {
		world := NewWorld()

		for range length {
			steps++

			if err := world.Take(step.Draw(t, "step")); isAwaited(err) {
				return
			} else if err != nil {
				t.Fatal(err)
			}
		}
	})

	g.Expect(steps).To(BeNumerically(">", 1_000_000))
}

// TestWalk checks walks as test/chaos repeats them.
func TestWalk(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Walk(1, 10)).To(Equal(Walk(1, 10)))
	g.Expect(Walk(1, 10)).NotTo(Equal(Walk(2, 10)))

	for seed := range uint64(10) {
		world := NewWorld()

		for i, step := range Walk(seed, 500) {
			err := world.Take(step)
			if isAwaited(err) {
				break
			}

			g.Expect(err).NotTo(HaveOccurred(), "seed %d, step %d: %s", seed, i, step)
		}
	}
}

func TestStepsAreDescribed(t *testing.T) {
	g := NewWithT(t)
	kinds := map[Kind]bool{}

	for _, step := range Walk(1, 2000) {
		g.Expect(strings.HasPrefix(step.String(), string(step.Kind))).To(BeTrue())
		kinds[step.Kind] = true
	}

	g.Expect(kinds).To(HaveLen(len(choices)), "each kind is chosen")
}
