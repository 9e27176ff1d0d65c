package model

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// TestWalk: the walk of a seed is always the same.
func TestWalk(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Walk(1, 10)).To(Equal(Walk(1, 10)))
	g.Expect(Walk(1, 10)).NotTo(Equal(Walk(2, 10)))
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
