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

// byRule groups findings by rule, those of the worst rules first.
func byRule(findings []Finding) [][]Finding {
	compare := func(a, b Finding) int {
		return cmp.Or(cmp.Compare(severity(a.Level), severity(b.Level)), cmp.Compare(a.Rule, b.Rule))
	}

	var groups [][]Finding

	for _, f := range slices.SortedStableFunc(slices.Values(findings), compare) {
		if last := len(groups) - 1; last >= 0 && groups[last][0].Rule == f.Rule {
			groups[last] = append(groups[last], f)
		} else {
			groups = append(groups, []Finding{f})
		}
	}

	return groups
}

// Text returns each broken rule once, followed by its findings and its explanation. The folder of all files comes
// first.
func Text(findings []Finding) string {
	var b strings.Builder

	folder := commonFolder(findings)
	if folder != "" {
		fmt.Fprintf(&b, "Files in %s\n\n", folder)
	}

	for _, found := range byRule(findings) {
		rule := found[0]
		fmt.Fprintf(&b, "%s %s: %s\n", rule.Level, rule.Rule, rule.Requirement)

		table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)

		for _, same := range byMessage(found) {
			for _, f := range same[:min(len(same), maxSame)] {
				columns := []string{strings.TrimPrefix(f.File, folder), f.subject(), f.Message}
				fmt.Fprintf(table, "  %s\n", strings.Join(slices.DeleteFunc(columns, isEmpty), "\t"))
			}

			if others := len(same) - maxSame; others > 0 {
				fmt.Fprintf(table, "  and %d more of the same; --output json lists all\n", others)
			}
		}

		_ = table.Flush() // a builder returns no error

		fmt.Fprintf(&b, "  Why:     %s\n  Remedy:  %s\n  See:     %s\n\n",
			rule.Why, rule.Remedy, strings.Join(contractsOf(found), "\n           "))
	}

	fmt.Fprintln(&b, Summary(findings))

	return b.String()
}

// maxSame is how many findings with the same message are printed.
const maxSame = 3

// byMessage groups findings by their messages, in the order of the first of each.
func byMessage(findings []Finding) [][]Finding {
	var groups [][]Finding

	for _, f := range findings {
		i := slices.IndexFunc(groups, func(g []Finding) bool { return g[0].Message == f.Message })
		if i < 0 {
			groups = append(groups, nil)
			i = len(groups) - 1
		}

		groups[i] = append(groups[i], f)
	}

	return groups
}

// commonFolder returns the innermost folder of all files, with a slash at its end; empty if there is none, and for
// addresses.
func commonFolder(findings []Finding) string {
	var folder string

	for i, f := range findings {
		own := f.File[:strings.LastIndex(f.File, "/")+1]
		if i == 0 {
			folder = own
		}

		for !strings.HasPrefix(own, folder) {
			folder = folder[:strings.LastIndex(strings.TrimSuffix(folder, "/"), "/")+1]
		}
	}

	if folder == "/" || strings.Contains(folder, "://") {
		return ""
	}

	return folder
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
func MarkdownTable[Subject any](rules []Rule[Subject]) string {
	var b strings.Builder

	b.WriteString("| Rule | Level | Requirement |\n| --- | --- | --- |\n")

	for _, rule := range rules {
		fmt.Fprintf(&b, "| [%s](%s) | %s | %s |\n",
			rule.Name, rule.Contract, rule.Level, markdownText.Replace(rule.Requirement))
	}

	return b.String()
}
