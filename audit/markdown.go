package audit

import (
	"fmt"
	"strings"
)

// MarkdownTable returns the rules as a table for the documentation.
func MarkdownTable() string {
	var b strings.Builder

	b.WriteString("| Rule | Level | Requirement |\n| --- | --- | --- |\n")

	for _, rule := range Rules() {
		fmt.Fprintf(&b, "| [%s](%s) | %s | %s |\n", rule.Name, rule.Contract, rule.Level, rule.Requirement)
	}

	return b.String()
}
