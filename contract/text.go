package contract

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// Summary returns the number of findings by level, for example "2 errors, 1 warning".
func Summary(findings []Finding) string {
	if len(findings) == 0 {
		return "no findings"
	}

	var parts []string

	for _, level := range levels {
		switch n := Count(findings, level); n {
		case 0:
		case 1:
			parts = append(parts, "1 "+string(level))
		default:
			parts = append(parts, fmt.Sprintf("%d %ss", n, level))
		}
	}

	return strings.Join(parts, ", ")
}

// byRule groups findings by rule. It returns the broken ones of the rules, sorted by severity and otherwise in their
// order.
func byRule(rules []Rule, findings []Finding) (broken []Rule, found map[string][]Finding) {
	found = map[string][]Finding{}

	for _, f := range findings {
		found[f.Rule] = append(found[f.Rule], f)
	}

	broken = slices.DeleteFunc(slices.Clone(rules), func(rule Rule) bool { return found[rule.Name] == nil })
	slices.SortStableFunc(broken, func(a, b Rule) int { return cmp.Compare(severity(a.Level), severity(b.Level)) })

	return broken, found
}

// Text returns each broken rule once, followed by its findings and its explanation.
func Text(rules []Rule, findings []Finding) string {
	var b strings.Builder

	broken, found := byRule(rules, findings)
	for _, rule := range broken {
		fmt.Fprintf(&b, "%s %s: %s\n", rule.Level, rule.Name, rule.Requirement)

		table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)

		for _, f := range found[rule.Name] {
			columns := slices.DeleteFunc([]string{f.File, f.subject(), f.Message}, isEmpty)
			fmt.Fprintf(table, "  %s\n", strings.Join(columns, "\t"))
		}

		_ = table.Flush() // a builder returns no error

		fmt.Fprintf(&b, "  Why:     %s\n  Remedy:  %s\n  See:     %s\n\n",
			rule.Why, rule.Remedy, strings.Join(contractsOf(found[rule.Name]), "\n           "))
	}

	fmt.Fprintln(&b, Summary(findings))

	return b.String()
}

// contractsOf returns the sections of the contracts that findings of one rule refer to, sorted.
func contractsOf(findings []Finding) []string {
	urls := make([]string, 0, len(findings))
	for _, f := range findings {
		urls = append(urls, f.Contract)
	}

	slices.Sort(urls)

	return slices.Compact(urls)
}

func isEmpty(text string) bool { return text == "" }

// subject returns the kind and name of the object, or "" if the finding concerns a whole file.
func (f Finding) subject() string { return strings.TrimSpace(f.Kind + " " + f.Object) }

// markdownText escapes what Markdown takes for a tag or the end of a cell.
var markdownText = strings.NewReplacer("<", "&lt;", "|", `\|`)

// MarkdownTable describes rules for the documentation.
func MarkdownTable(rules []Rule) string {
	var b strings.Builder

	b.WriteString("| Rule | Level | Requirement |\n| --- | --- | --- |\n")

	for _, rule := range rules {
		fmt.Fprintf(&b, "| [%s](%s) | %s | %s |\n",
			rule.Name, rule.Contract, rule.Level, markdownText.Replace(rule.Requirement))
	}

	return b.String()
}
