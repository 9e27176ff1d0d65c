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

// Formats are the names that Write takes: text for people, json for programs, sarif (2.1.0) for
// code scanning, and github for annotations in a workflow of GitHub Actions.
var Formats = []string{"text", "json", "sarif", "github"}

// Write writes findings in one of Formats.
func Write(w io.Writer, format string, findings []Finding) error {
	switch format {
	case "text":
		return writeText(w, findings)
	case "json":
		return writeJSON(w, findings)
	case "sarif":
		return writeSARIF(w, findings)
	case "github":
		return writeGitHub(w, findings)
	}

	return fmt.Errorf("unknown format %q; choose one of %s", format, strings.Join(Formats, ", "))
}

// Summary says in a few words how many findings there are.
func Summary(findings []Finding) string {
	if len(findings) == 0 {
		return "no findings"
	}

	var parts []string

	for _, l := range []struct {
		level Level
		noun  string
	}{{Error, "error"}, {Warning, "warning"}, {Info, "note"}} {
		if n := Count(findings, l.level); n > 0 {
			parts = append(parts, count(n, l.noun))
		}
	}

	return strings.Join(parts, ", ")
}

// byRule groups findings by their rules, the worst rules first and otherwise in the order of Rules.
func byRule(findings []Finding) (rules []Rule, found map[string][]Finding) {
	found = map[string][]Finding{}
	for _, f := range findings {
		found[f.Rule] = append(found[f.Rule], f)
	}

	rules = slices.DeleteFunc(Rules(), func(rule Rule) bool { return found[rule.Name] == nil })
	slices.SortStableFunc(rules, func(a, b Rule) int { return cmp.Compare(severity(a.Level), severity(b.Level)) })

	return rules, found
}

func severity(level Level) int { return slices.Index([]Level{Error, Warning, Info}, level) }

// writeText explains each broken rule once, and lists below it where it is broken.
func writeText(w io.Writer, findings []Finding) error {
	var b strings.Builder

	rules, found := byRule(findings)
	for _, rule := range rules {
		fmt.Fprintf(&b, "%s %s: %s\n", rule.Level, rule.Name, rule.Demand)

		table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		for _, f := range found[rule.Name] {
			fmt.Fprintf(table, "  %s\t%s\t%s\n", f.location(), strings.TrimSpace(f.Kind+" "+f.Object), f.Message)
		}

		if err := table.Flush(); err != nil {
			return err
		}

		fmt.Fprintf(&b, "  Why:     %s\n  Remedy:  %s\n  See:     %s\n\n", rule.Why, rule.Remedy, rule.Contract)
	}

	fmt.Fprintln(&b, Summary(findings))
	_, err := io.WriteString(w, b.String())

	return err
}

// location is file:line, or the file alone.
func (f Finding) location() string {
	if f.Line == 0 {
		return f.File
	}

	return fmt.Sprintf("%s:%d", f.File, f.Line)
}

func writeJSON(w io.Writer, findings []Finding) error {
	if findings == nil {
		findings = []Finding{}
	}

	return indented(w, struct {
		Errors   int       `json:"errors"`
		Warnings int       `json:"warnings"`
		Infos    int       `json:"infos"`
		Findings []Finding `json:"findings"`
	}{Count(findings, Error), Count(findings, Warning), Count(findings, Info), findings})
}

func indented(w io.Writer, v any) error {
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
		properties := "file=" + githubProperty.Replace(f.File)
		if f.Line > 0 {
			properties += fmt.Sprintf(",line=%d", f.Line)
		}

		if _, err := fmt.Fprintf(
			w,
			"::%s %s,title=%s::%s\n",
			githubCommands[f.Level],
			properties,
			githubProperty.Replace(f.Rule),
			githubText.Replace(f.sentence()),
		); err != nil {
			return err
		}
	}

	return nil
}

// sentence is the finding where nothing else tells of its object and remedy.
func (f Finding) sentence() string {
	subject := strings.TrimSpace(f.Kind + " " + f.Object)
	if subject == "" {
		subject = f.File
	}

	return fmt.Sprintf("%s %s. %s %s", subject, f.Message, f.Why, f.Remedy)
}
