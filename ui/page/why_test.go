package page_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/controllers/reconcile/decide"
	"github.com/capstan-project/capstan/ui/page"
)

// explanation returns what the operator decides about a provider that waits for core, with a text in every place.
func explanation(text string) page.Explanation {
	ready := condition("Ready", "False", text, text+" now")
	inputs := []decide.Input{{Name: text, Value: text, From: text, Trust: decide.Trust(text)}}

	return page.Explanation{
		Ready: &ready,
		Lists: []decide.List{
			{Name: text, Rows: []decide.Row{
				{Name: text, Verdict: decide.Passed, Action: decide.Action(text), Inputs: inputs},
				{Name: text, Verdict: decide.NotNeeded, Inputs: inputs},
			}},
			{Name: text, Rows: []decide.Row{
				{
					Name: text, Verdict: decide.Decided, Decisive: true, Result: text, Inputs: inputs, Ends: text,
					Until: now.Add(time.Minute),
				},
				{Name: text, Verdict: decide.NotReached},
			}},
		},
		Unknown: []string{text},
	}
}

func TestWhy(t *testing.T) {
	g := NewWithT(t)
	why := func(found page.Explanation, computed time.Time, err error) string {
		p := page.NewProvider(frame(), detailed(), history(), "")
		p.Explain(found, computed, err)

		_, document := render(t, p)
		_, section, _ := strings.Cut(texts(document, "main")[0], " Why ")
		section, _, _ = strings.Cut(section, " Available upgrades ")

		return section
	}

	g.Expect(why(page.Explanation{}, time.Time{}, nil)).To(Equal(
		"capstan why infrastructure-aws -n aws-system Copy What the operator decides is being computed."))
	g.Expect(why(explanation("core"), now.Add(-time.Minute), nil)).To(Equal(
		"as of 60s ago capstan why infrastructure-aws -n aws-system Copy Ready would be False (core): core now " +
			"Decided by the row \"core\" of core core: core (core: core) It decides again at 2026-11-22T12:01:00Z. " +
			"Who ends it: core core " +
			"Rows of core core passed: core core: core (core: core) core not needed core: core (core: core) " +
			"Rows of core core decided: core core: core (core: core) 1 row not reached"))
	g.Expect(why(page.Explanation{Lists: []decide.List{{}}}, now, nil)).To(
		ContainSubstring("No row of the rules has found anything that is left to do."))
	g.Expect(why(page.Explanation{}, now, nil)).To(ContainSubstring("No row of the rules was reached"))
	g.Expect(why(page.Explanation{}, now, errors.New("forbidden"))).To(
		ContainSubstring("What the operator decides cannot be computed: forbidden"))
}
