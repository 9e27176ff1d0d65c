package hooks_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/controllers/release/hooks"
)

func TestBudgetLimitsTime(t *testing.T) {
	g := NewWithT(t)
	start := time.Now()

	var budget hooks.Budget

	g.Expect(budget.Take(5*time.Minute, start)).To(Equal(5 * time.Minute))
	g.Expect(budget.Take(5*time.Minute, start.Add(4*time.Minute))).To(Equal(time.Minute))
	g.Expect(budget.Left(5*time.Minute, start.Add(4*time.Minute))).To(Equal(time.Minute), "removing a hook takes time too")
	_, err := budget.Take(5*time.Minute, start.Add(5*time.Minute))
	g.Expect(err).To(MatchError("the chart's hooks took longer than 5m0s together"))
}

func TestBudgetLimitsNumber(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()

	var budget hooks.Budget

	for range hooks.MaxCount {
		g.Expect(budget.Take(time.Minute, now)).To(Equal(time.Minute))
	}

	_, err := budget.Take(time.Minute, now)
	g.Expect(err).To(MatchError("the chart has more than 50 hooks for this action"))
}
