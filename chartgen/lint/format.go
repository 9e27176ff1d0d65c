package lint

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Formats are the output formats of Write: text for users, json for programs, sarif (2.1.0) for
// code scanning, and github for annotations in GitHub Actions.
var Formats = []string{"text", "json", "sarif", "github"}

// Write writes findings in one of Formats. The rules are all that were checked, such as Rules.
func Write(w io.Writer, format string, rules []Rule, findings []Finding) error {
	switch format {
	case "text":
		return writeText(w, rules, findings)
	case "json":
		return writeJSON(w, findings)
	case "sarif":
		return writeSARIF(w, rules, findings)
	case "github":
		return writeGitHub(w, findings)
	}

	return fmt.Errorf("unknown format %q; choose one of %s", format, strings.Join(Formats, ", "))
}

// Summary returns the number of findings by level, for example "2 errors, 1 warning, 3 accepted".
func Summary(findings []Finding) string {
	if len(findings) == 0 {
		return "no findings"
	}

	var parts []string

	for _, level := range levels {
		if n := Count(findings, level); n > 0 {
			parts = append(parts, plural(n, string(level)))
		}
	}

	if n := countAccepted(findings); n > 0 {
		parts = append(parts, fmt.Sprintf("%d accepted", n))
	}

	return strings.Join(parts, ", ")
}

func countAccepted(findings []Finding) int {
	n := 0

	for _, f := range findings {
		if f.Accepted != "" {
			n++
		}
	}

	return n
}

// levels are all levels, most severe first.
var levels = []Level{Error, Warning, Info}

// byRule groups the findings that are not accepted by rule. It returns the broken ones of the rules, sorted by severity
// and otherwise in their order.
func byRule(rules []Rule, findings []Finding) (broken []Rule, found map[string][]Finding) {
	found = map[string][]Finding{}

	for _, f := range findings {
		if f.Accepted == "" {
			found[f.Rule] = append(found[f.Rule], f)
		}
	}

	broken = slices.DeleteFunc(slices.Clone(rules), func(rule Rule) bool { return found[rule.Name] == nil })
	slices.SortStableFunc(broken, func(a, b Rule) int { return cmp.Compare(severity(a.Level), severity(b.Level)) })

	return broken, found
}

// severity returns a number that is lower for more severe levels.
func severity(level Level) int { return slices.Index(levels, level) }

// writeText writes each broken rule once, followed by its findings and its explanation. What is accepted follows with
// its reason, but for the findings of a baseline, which may be many.
func writeText(w io.Writer, rules []Rule, findings []Finding) error {
	var b strings.Builder

	broken, found := byRule(rules, findings)
	for _, rule := range broken {
		fmt.Fprintf(&b, "%s %s: %s\n", rule.Level, rule.Name, rule.Requirement)

		table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)

		for _, f := range found[rule.Name] {
			columns := slices.DeleteFunc([]string{f.position(), f.subject(), f.Message}, isEmpty)
			fmt.Fprintf(table, "  %s\n", strings.Join(columns, "\t"))
		}

		if err := table.Flush(); err != nil {
			return err
		}

		fmt.Fprintf(&b, "  Why:     %s\n  Remedy:  %s\n  See:     %s\n\n",
			rule.Why, rule.Remedy, strings.Join(contractsOf(found[rule.Name]), "\n           "))
	}

	writeAccepted(&b, findings)
	fmt.Fprintln(&b, Summary(findings))
	_, err := io.WriteString(w, b.String())

	return err
}

func writeAccepted(b *strings.Builder, findings []Finding) {
	title := "accepted:\n"

	for _, f := range findings {
		if f.Accepted == "" || f.Accepted == inBaseline {
			continue
		}

		columns := slices.DeleteFunc([]string{f.position(), f.subject(), f.Rule + " " + f.Message}, isEmpty)
		fmt.Fprintf(b, "%s  %s\n  Reason:  %s\n\n", title, strings.Join(columns, "  "), f.Accepted)

		title = ""
	}
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

// position returns "file:line", the file alone if the finding has no line, or "" without a file.
func (f Finding) position() string {
	if f.Line == 0 {
		return f.File
	}

	return fmt.Sprintf("%s:%d", f.File, f.Line)
}

func writeJSON(w io.Writer, findings []Finding) error {
	if findings == nil {
		findings = []Finding{}
	}

	return writeIndented(w, struct {
		Errors   int       `json:"errors"`
		Warnings int       `json:"warnings"`
		Infos    int       `json:"infos"`
		Accepted int       `json:"accepted"`
		Findings []Finding `json:"findings"`
	}{
		Errors:   Count(findings, Error),
		Warnings: Count(findings, Warning),
		Infos:    Count(findings, Info),
		Accepted: countAccepted(findings),
		Findings: findings,
	})
}

// writeIndented writes a value as indented JSON.
func writeIndented(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")

	return encoder.Encode(v)
}

var (
	githubText     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	githubProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	githubCommands = map[Level]string{Error: "error", Warning: "warning", Info: "notice"}
)

func writeGitHub(w io.Writer, findings []Finding) error {
	for _, f := range findings {
		if f.Accepted != "" {
			continue
		}

		var properties string
		if f.File != "" {
			properties = "file=" + githubProperty.Replace(f.File) + ","
		}

		if f.Line > 0 {
			properties += fmt.Sprintf("line=%d,", f.Line)
		}

		_, err := fmt.Fprintf(w, "::%s %stitle=%s::%s\n",
			githubCommands[f.Level], properties, githubProperty.Replace(f.Rule), githubText.Replace(f.sentence()))
		if err != nil {
			return err
		}
	}

	return nil
}

// sentence returns the finding as a complete text, with its object and remedy.
func (f Finding) sentence() string {
	return fmt.Sprintf("%s %s. %s %s", cmp.Or(f.subject(), f.File), f.Message, f.Why, f.Remedy)
}
