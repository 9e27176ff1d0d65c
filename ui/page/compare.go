package page

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/capstan-project/capstan/controllers/facts"
	"github.com/capstan-project/capstan/controllers/objectdiff"
)

const (
	// maxChanges and maxLines limit the changes on a page, and their lines in total. maxLine limits a line in bytes.
	maxChanges = 200
	maxLines   = 1000
	maxLine    = 1000
)

// Compare is the page with the differences between two states of a release.
type Compare struct {
	Frame

	// ID and Label are those of the provider, and Path that of its page.
	ID, Label, Path string
	// Action is the path of the page, and From and To are what can be compared.
	Action   string
	From, To []Choice
	// Summary counts the changes.
	Summary string
	Changes []Change
	// Problem is why nothing can be compared; empty if it could.
	Problem string
	// Notes are what is not shown, with the reasons.
	Notes   []string
	Command string
}

// Change is the change of an object. Its level is "good" if it is created, "busy" if it is changed, and "bad" if it is
// deleted.
type Change struct {
	Level, Object, Kind string
	Lines               []Line
}

// Line is a line of a diff. Its kind is "added", "removed", "hunk" or empty.
type Line struct{ Kind, Text string }

// comparePath returns the path of the comparison of two revisions below the base; 0 is the cluster or the
// newest revision.
func comparePath(v facts.Provider, from, to int) string {
	query := url.Values{}
	if from != 0 {
		query.Set("from", strconv.Itoa(from))
	}

	if to != 0 {
		query.Set("to", strconv.Itoa(to))
	}

	path := providerPath(v) + "/compare"
	if len(query) > 0 {
		path += "?" + query.Encode()
	}

	return path
}

// NewCompare returns the page with a comparison of the sides. History is what can be compared.
func NewCompare(
	frame Frame, v facts.Provider, sides facts.Sides, history []facts.Revision, c facts.Comparison,
) *Compare {
	p := &Compare{
		Frame:   frame,
		ID:      ID(v.Kind, v.Namespace, v.Name),
		Label:   v.Label,
		Path:    frame.Base + providerPath(v),
		Action:  frame.Base + comparePath(v, 0, 0),
		Command: command(v, diffArguments(sides)...),
	}
	p.addChoices(sides, history)

	counts := map[objectdiff.Kind]int{}
	for _, change := range c.Changes {
		counts[change.Kind]++
	}

	p.Summary = fmt.Sprintf("%d to create, %d to change, %d to delete",
		counts[objectdiff.Created], counts[objectdiff.Changed], counts[objectdiff.Deleted])

	if c.Withheld != "" {
		p.Notes = append(p.Notes, c.Withheld)
	}

	p.Notes = append(p.Notes, c.Unknown...)
	p.addChanges(c.Changes)

	return p
}

// diffArguments returns the arguments of the command that prints a comparison.
func diffArguments(sides facts.Sides) []string {
	arguments := []string{"diff"}
	if sides.From == 0 {
		arguments = append(arguments, "--live")
	} else {
		arguments = append(arguments, "--from", strconv.Itoa(sides.From))
	}

	if sides.To != 0 {
		arguments = append(arguments, "--revision", strconv.Itoa(sides.To))
	}

	return arguments
}

// addChoices adds what can be compared, newest first.
func (p *Compare) addChoices(sides facts.Sides, history []facts.Revision) {
	p.From = []Choice{{Text: "the cluster now", Selected: sides.From == 0}}
	p.To = []Choice{{Text: "the newest revision", Selected: sides.To == 0}}

	for _, r := range slices.Backward(history) {
		number := r.Revision
		text := strings.TrimSpace(fmt.Sprintf("revision %d %s", number, r.Version))
		choice := Choice{Value: strconv.Itoa(number), Text: text}

		choice.Selected = sides.From == number
		p.From = append(p.From, choice)

		choice.Selected = sides.To == number
		p.To = append(p.To, choice)
	}
}

// addChanges adds as many changes and lines as a page may have.
func (p *Compare) addChanges(changes []objectdiff.Change) {
	shown, total := 0, 0

	for i, c := range changes {
		lines := slices.Collect(strings.Lines(c.Diff))
		total += len(lines)

		if i >= maxChanges {
			continue
		}

		change := Change{Level: changeLevel(c.Kind), Object: c.Object, Kind: "would be " + string(c.Kind)}

		for _, line := range lines[:min(len(lines), maxLines-shown)] {
			change.Lines = append(change.Lines, newLine(strings.TrimSuffix(line, "\n")))
		}

		shown += len(change.Lines)
		p.Changes = append(p.Changes, change)
	}

	if shown < total {
		p.Notes = append(p.Notes, fmt.Sprintf(
			"Only %d of %d lines are shown. To see all of them, run: %s", shown, total, p.Command))
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

func newLine(text string) Line {
	line := Line{Text: text}
	if len(text) > maxLine {
		line.Text = strings.ToValidUTF8(text[:maxLine], "") + " …"
	}

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
