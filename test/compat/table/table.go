package table

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2/types"
)

// Result is the outcome of a row.
type Result string

// The results, from good to bad. A row has the worst of its specs.
const (
	// Pass means that it works as the row says.
	Pass Result = "pass"
	// Different means that it works as docs/cluster-api-operator.md says.
	Different Result = "differs"
	// Skipped means that the machine lacks something that the spec needs.
	Skipped Result = "skipped"
	// Failed means that it does not work.
	Failed Result = "FAILED"
)

// results orders the results.
var results = []Result{Pass, Different, Skipped, Failed}

// line is a row of the table.
type line struct {
	section, text string
	result        Result
	// subjects are the documented differences that its specs show.
	subjects []string
	// notes are the reasons why specs have failed or were skipped.
	notes []string
}

// Table holds the rows in the order of the specs.
type Table struct {
	lines []*line
}

// Read reads a JSON report of Ginkgo. Specs without a row are left out, and so are those that the run's filter left
// out.
func Read(r io.Reader) (*Table, error) {
	var reports []types.Report
	if err := json.NewDecoder(r).Decode(&reports); err != nil {
		return nil, fmt.Errorf("read Ginkgo's report: %w", err)
	}

	t := &Table{}

	for _, report := range reports {
		for _, spec := range report.SpecReports {
			if spec.State != types.SpecStatePending && (spec.State != types.SpecStateSkipped || spec.Failure.Message != "") {
				t.add(spec)
			}
		}
	}

	return t, nil
}

// add adds the outcome of a spec to its rows.
func (t *Table) add(spec types.SpecReport) {
	var subjects []string

	for _, label := range spec.Labels() {
		if subject, ok := parseDifference(label); ok {
			subjects = append(subjects, subject)
		}
	}

	result, note := outcome(spec, len(subjects) > 0)

	for _, label := range spec.Labels() {
		section, text, ok := parseRow(label)
		if !ok {
			continue
		}

		l := t.line(section, text)
		l.subjects = append(l.subjects, subjects...)

		if slices.Index(results, result) > slices.Index(results, l.result) {
			l.result = result
		}

		if note != "" {
			l.notes = append(l.notes, note)
		}
	}
}

// outcome returns the result of a spec, and the reason of a bad one.
func outcome(spec types.SpecReport, differs bool) (Result, string) {
	message, _, _ := strings.Cut(strings.TrimSpace(spec.Failure.Message), "\n")

	switch {
	case spec.State == types.SpecStateSkipped:
		return Skipped, message
	case spec.State != types.SpecStatePassed:
		return Failed, fmt.Sprintf("%s: %s", spec.LeafNodeText, message)
	case differs:
		return Different, ""
	default:
		return Pass, ""
	}
}

// line returns a row, and adds it, after the others of its section, if it is new.
func (t *Table) line(section, text string) *line {
	at := len(t.lines)

	for i, l := range t.lines {
		if l.section == section {
			if at = i + 1; l.text == text {
				return l
			}
		}
	}

	added := &line{section: section, text: text, result: Pass}
	t.lines = slices.Insert(t.lines, at, added)

	return added
}

// Write writes the table in Markdown, with the reasons of the differences. It returns an error if a row has failed, if
// a row differs without a documented reason, or if a documented difference was not shown.
func (t *Table) Write(w io.Writer, differences []Difference) error {
	var (
		section string
		out     strings.Builder
		counts  = map[Result]int{}
		errs    []error
	)

	for _, l := range t.lines {
		if l.section != section {
			section = l.section
			fmt.Fprintf(&out, "\n%s\n\n| row | result | reason |\n|---|---|---|\n", section)
		}

		notes, err := l.explain(differences)
		errs = append(errs, err)
		counts[l.result]++
		fmt.Fprintf(&out, "| %s | %s | %s |\n", l.text, l.result, strings.Join(notes, "; "))
	}

	errs = append(errs, t.missing(differences))

	fmt.Fprintf(&out, "\n%d rows:", len(t.lines))

	for _, result := range results {
		fmt.Fprintf(&out, " %d %s", counts[result], result)
	}

	fmt.Fprintln(&out)

	_, err := io.WriteString(w, out.String())

	return errors.Join(append(errs, err)...)
}

// explain returns the reasons of a row that has not simply passed, and an error if it must not be so.
func (l *line) explain(differences []Difference) ([]string, error) {
	notes := slices.Clone(l.notes)

	for _, subject := range slices.Compact(slices.Sorted(slices.Values(l.subjects))) {
		i := slices.IndexFunc(differences, func(d Difference) bool { return d.Subject == subject })
		if i < 0 {
			return notes, fmt.Errorf("%s: %s: the difference %q is not documented", l.section, l.text, subject)
		}

		notes = append(notes, subject+": "+differences[i].Reason)
	}

	if l.result == Failed {
		return notes, fmt.Errorf("%s: %s: %s", l.section, l.text, strings.Join(l.notes, "; "))
	}

	return notes, nil
}

// missing returns an error that names the documented differences that no spec has shown.
func (t *Table) missing(differences []Difference) error {
	var errs []error

	for _, d := range differences {
		shown := slices.ContainsFunc(t.lines, func(l *line) bool { return slices.Contains(l.subjects, d.Subject) })
		if !shown {
			errs = append(errs, fmt.Errorf("the documented difference %q was not shown by any row", d.Subject))
		}
	}

	return errors.Join(errs...)
}
