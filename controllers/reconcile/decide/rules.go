package decide

import (
	"fmt"
	"strings"

	"github.com/capstan-project/capstan/controllers/reconcile/report"
)

// rule decides about one thing. It reports whether it does.
type rule[Seen any] struct {
	name   string
	decide func(Seen) (Step, bool)
}

// first returns the step of the first rule that decides, and whether one does.
func first[Seen any](rules []rule[Seen], seen Seen) (Step, bool) {
	for _, rule := range rules {
		if step, decides := rule.decide(seen); decides {
			step.Row = rule.name
			return step, true
		}
	}

	return Step{}, false
}

// asked is what has answers.
type asked interface{ answers() Answers }

// ask returns the rule that takes an action when that is needed, and ends what it is part of if the action does.
func ask[Seen asked](action Action, needed func(Seen) bool) func(Seen) (Step, bool) {
	return func(seen Seen) (Step, bool) {
		answer, answered := seen.answers()[action]

		switch {
		case !needed(seen):
			return Step{}, false
		case !answered:
			return Step{Action: action}, true
		}

		return end(answer)
	}
}

// look returns the rule that takes an action when that is needed, whatever comes of it.
func look[Seen asked](action Action, needed func(Seen) bool) func(Seen) (Step, bool) {
	return func(seen Seen) (Step, bool) {
		_, answered := seen.answers()[action]
		return Step{Action: action}, needed(seen) && !answered
	}
}

// end returns the step that ends a part of a reconcile if the result does.
func end(result report.Result) (Step, bool) {
	return Step{Action: End, Result: result}, result.Ends()
}

// MarkdownLists returns the rules in their order, for the documentation.
func MarkdownLists() string {
	var b strings.Builder

	list(&b, "Beginning", beginRules)
	b.WriteString("\n")
	list(&b, "Care", careRules)
	b.WriteString("\n")
	list(&b, "Change", changeRules)
	b.WriteString("\n")
	list(&b, "Automatic upgrades", upgradeRules)
	b.WriteString("\n")
	list(&b, "Removal", removeRules)

	return b.String()
}

func list[Seen any](b *strings.Builder, title string, rules []rule[Seen]) {
	fmt.Fprintf(b, "%s:\n\n", title)

	for i, rule := range rules {
		fmt.Fprintf(b, "%d. %s\n", i+1, rule.name)
	}
}
