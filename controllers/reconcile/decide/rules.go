package decide

import (
	"fmt"
	"strings"
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

// MarkdownLists returns the rules in their order, for the documentation.
func MarkdownLists() string {
	var b strings.Builder

	list(&b, "Care", careRows)
	b.WriteString("\n")
	list(&b, "Change", changeRows)

	return b.String()
}

func list[Seen any](b *strings.Builder, title string, rules []rule[Seen]) {
	fmt.Fprintf(b, "%s:\n\n", title)

	for i, rule := range rules {
		fmt.Fprintf(b, "%d. %s\n", i+1, rule.name)
	}
}
