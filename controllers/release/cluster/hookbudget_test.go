package cluster

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestBudgetLimitsTime(t *testing.T) {
	g := NewWithT(t)
	start := time.Now()

	var budget hookBudget

	g.Expect(budget.take(5*time.Minute, start)).To(Equal(5 * time.Minute))
	g.Expect(budget.take(5*time.Minute, start.Add(4*time.Minute))).To(Equal(time.Minute))
	g.Expect(budget.left(5*time.Minute, start.Add(4*time.Minute))).To(Equal(time.Minute), "removing a hook takes time too")
	_, err := budget.take(5*time.Minute, start.Add(5*time.Minute))
	g.Expect(err).To(MatchError("the chart's hooks took longer than 5m0s together"))
}

func TestBudgetLimitsNumber(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()

	var budget hookBudget

	for range maxHooks {
		g.Expect(budget.take(time.Minute, now)).To(Equal(time.Minute))
	}

	_, err := budget.take(time.Minute, now)
	g.Expect(err).To(MatchError("the chart has more than 50 hooks for this action"))
}
