package longwait_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/controllers/longwait"
)

func TestBegin(t *testing.T) {
	g := NewWithT(t)

	var calls []string

	note := func(who string) func(string) {
		return func(what string) { calls = append(calls, who+": "+what) }
	}

	longwait.Begin(t.Context(), "nothing")
	g.Expect(calls).To(BeEmpty())

	outer := longwait.With(t.Context(), note("outer"))
	inner := longwait.With(outer, note("inner"))

	longwait.Begin(inner, "a Job")
	longwait.Begin(outer, "a Pod")
	g.Expect(calls).To(Equal([]string{"inner: a Job", "outer: a Job", "outer: a Pod"}))
}
