package page

import (
	"fmt"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/controllers/crds/safety"
	"github.com/capstan-project/capstan/controllers/facts"
	"github.com/capstan-project/capstan/controllers/objectdiff"
)

const (
	// maxChanges and maxLines limit the changes on a page, and their lines in total. maxLine limits a line in bytes.
	maxChanges = 200
	maxLines   = 1000
	maxLine    = 1000
	// maxFields limits the fields of a CRD.
	maxFields = 20
)

// Changes are the differences between two states of a release, as much of them as a page may have.
type Changes struct {
	// Summary counts the changes.
	Summary string
	Objects []Change
	CRDs    []CRDChange
	// Findings are the problems with the changes of CRDs, the worst first.
	Findings []CRDFinding
	// Notes are what is not shown, with the reasons.
	Notes []string
	// Warnings are about the resource.
	Warnings []string
	// Cut is how much is not shown because it is too much; empty if everything is.
	Cut string
}

// Change is the change of an object. Its level is "good" if it is created, "busy" if it is changed, and "bad" if it is
// deleted.
type Change struct {
	Level, Object, Kind string
	Lines               []Line
}

// Line is a line of a diff. Its kind is "added", "removed", "hunk" or empty.
type Line struct{ Kind, Text string }

// CRDChange is the change of a CRD, with levels as those of a Change.
type CRDChange struct {
	Level, Name, Kind string
	Fields            []string
	// More is how many fields are not shown; empty for none.
	More string
}

// CRDFinding is a problem with the change of a CRD. Its level is "bad" if the change would be refused, or "busy".
type CRDFinding struct{ Level, Title, Text string }

// NewChanges returns the changes of a comparison.
func NewChanges(c facts.Comparison) Changes {
	p := Changes{Warnings: shortTexts(c.Warnings)}
	counts := map[objectdiff.Kind]int{}

	for _, change := range c.Changes {
		counts[change.Kind]++
	}

	p.Summary = fmt.Sprintf("%d to create, %d to change, %d to delete",
		counts[objectdiff.Created], counts[objectdiff.Changed], counts[objectdiff.Deleted])

	if c.Withheld != "" {
		p.Notes = append(p.Notes, c.Withheld)
	}

	p.Notes = append(p.Notes, shortTexts(c.Unknown)...)
	p.addObjects(c.Changes)
	p.addCRDs(c.CRDs)

	for _, f := range c.Findings[:min(len(c.Findings), maxChanges)] {
		p.Findings = append(p.Findings, CRDFinding{Level: findingLevel(f.Level), Title: f.Level, Text: shortText(f.Text)})
	}

	return p
}

// IsEmpty reports whether nothing would change.
func (p Changes) IsEmpty() bool { return len(p.Objects) == 0 && len(p.CRDs) == 0 }

// addObjects adds as many changes and lines as a page may have.
func (p *Changes) addObjects(changes []objectdiff.Change) {
	shown, total := 0, 0

	for i, c := range changes {
		total += strings.Count(c.Diff, "\n")

		if i >= maxChanges {
			continue
		}

		change := Change{Level: changeLevel(c.Kind), Object: shortText(c.Object), Kind: "would be " + string(c.Kind)}

		for line := range strings.Lines(c.Diff) {
			if shown == maxLines {
				break
			}

			shown++

			change.Lines = append(change.Lines, newLine(strings.TrimSuffix(line, "\n")))
		}

		p.Objects = append(p.Objects, change)
	}

	if shown < total {
		p.Cut = fmt.Sprintf("Only %d of %d lines are shown.", shown, total)
	}
}

// addCRDs adds as many changes of CRDs and fields of them as a page may have.
func (p *Changes) addCRDs(changes []facts.CRDChange) {
	for _, c := range changes[:min(len(changes), maxChanges)] {
		kind := objectdiff.Changed
		if c.Created {
			kind = objectdiff.Created
		}

		change := CRDChange{
			Level:  changeLevel(kind),
			Name:   shortText(c.Name),
			Kind:   "would be " + string(kind),
			Fields: shortTexts(c.Fields[:min(len(c.Fields), maxFields)]),
		}

		if more := len(c.Fields) - len(change.Fields); more > 0 {
			change.More = fmt.Sprintf("and %d more", more)
		}

		p.CRDs = append(p.CRDs, change)
	}
}

func changeLevel(kind objectdiff.Kind) string {
	switch kind {
	case objectdiff.Created:
		return levelGood
	case objectdiff.Deleted:
		return levelBad
	default:
		return levelBusy
	}
}

func findingLevel(level string) string {
	switch safety.Level(level) {
	case safety.Error:
		return levelBad
	default:
		return levelBusy
	}
}

func newLine(text string) Line {
	line := Line{Text: shortText(text)}

	switch {
	case strings.HasPrefix(text, "+"):
		line.Kind = "added"
	case strings.HasPrefix(text, "-"):
		line.Kind = "removed"
	case strings.HasPrefix(text, "@@"):
		line.Kind = "hunk"
	}

	return line
}

// shortText cuts a text that is longer than a line may be. The result keeps nothing of the text in memory.
func shortText(text string) string {
	if len(text) > maxLine {
		text = strings.ToValidUTF8(text[:maxLine], "") + " …"
	}

	return strings.Clone(text)
}

// shortTexts cuts texts of a list.
func shortTexts(texts []string) []string {
	short := slices.Clone(texts[:min(len(texts), maxChanges)])
	for i, text := range short {
		short[i] = shortText(text)
	}

	return short
}
