package model

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

// TestRandomWalks takes more than a million random steps, the same each time. The flag -rapid.seed selects
// others. Of a walk that fails, rapid shows the shortest one that fails in the same way.
func TestRandomWalks(t *testing.T) {
	g := NewWithT(t)

	const length = 100

	for name, value := range map[string]string{
		"rapid.checks": "10001", "rapid.nofailfile": "true", "rapid.seed": "1",
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
		world := NewWorld(WithoutDefect)

		for range length {
			steps++

			if err := world.Take(step.Draw(t, "step")); err != nil {
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
		if err := takeWalk(WithoutDefect, seed); err != nil {
			t.Error(err)
		}
	}
}

// TestDefects checks that walks find the mistakes that the operator could make.
func TestDefects(t *testing.T) {
	for defect, want := range map[Defect]Property{
		ReturnsToPaused:       Target,
		ReturnsUnchecked:      Convertible,
		FailsPruning:          Passing,
		WritesWithoutLease:    Fenced,
		HoldsByDigest:         Hold,
		AppliesEdits:          Asked,
		ReportsWantedContract: Contract,
		IgnoresDrift:          Objects,
		ForgetsObjects:        Removal,
		RetriesForever:        Rest,
		GivesUp:               Converges,
		KeepsDeployed:         History,
	} {
		t.Run(string(defect), func(t *testing.T) {
			const most = 1000

			found := map[Property]int{}

			for seed := range uint64(most) {
				violation := new(Violation)
				if errors.As(takeWalk(defect, seed), &violation) {
					found[violation.Property]++
				}

				if found[want] > 0 {
					return
				}
			}

			t.Errorf("%d walks found %v, and never %q", most, found, want)
		})
	}
}

// takeWalk takes a walk in a world with a defect.
func takeWalk(defect Defect, seed uint64) error {
	world := NewWorld(defect)

	for i, step := range Walk(seed, 500) {
		if err := world.Take(step); err != nil {
			return fmt.Errorf("seed %d, step %d, %s: %w", seed, i+1, step, err)
		}
	}

	return nil
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
