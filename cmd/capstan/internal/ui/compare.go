package ui

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
	"github.com/capstan-project/capstan/controllers/objectdiff"
)

const (
	// maxChanges and maxLines limit the changes on a page, and their lines in total. maxLine limits a line in bytes.
	maxChanges = 200
	maxLines   = 1000
	maxLine    = 1000
)

// Compare is the page with the differences between two states of a release, as much of them as a page may have.
type Compare struct {
	Frame

	Card Card
	// From and To are what can be compared.
	From, To []Choice
	// Problem is why nothing can be compared; empty if it could.
	Problem string
	Command string

	// Summary counts the changes.
	Summary string
	Changes []Change
	// Note is what is not shown, with the reason; empty if everything is.
	Note string
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

// newCompare returns the page with a comparison of the sides. History is what can be compared.
func newCompare(frame Frame, v view.Provider, sides view.Sides, history []view.Revision, c view.Comparison) *Compare {
	card := Card{v, frame}
	p := &Compare{
		Frame: frame, Card: card, Command: card.Command(diffArguments(sides)...), Note: c.Withheld,
		From: choices(sides.From, history), To: choices(sides.To, history),
	}
	p.addChanges(c.Changes)

	return p
}

// diffArguments returns the arguments of the command that prints a comparison.
func diffArguments(sides view.Sides) []string {
	arguments := []string{"diff"}
	if sides.From != 0 {
		arguments = append(arguments, "--baseline", strconv.Itoa(sides.From))
	}

	if sides.To != 0 {
		arguments = append(arguments, "--revision", strconv.Itoa(sides.To))
	}

	return arguments
}

// choices returns what can be compared, newest first; 0 is the newest revision.
func choices(selected int, history []view.Revision) []Choice {
	all := []Choice{{Text: "the newest revision", Selected: selected == 0}}

	for _, r := range slices.Backward(history) {
		text := strings.TrimSpace(fmt.Sprintf("revision %d %s", r.Revision, r.Version))
		all = append(all, Choice{Value: strconv.Itoa(r.Revision), Text: text, Selected: r.Revision == selected})
	}

	return all
}

// addChanges adds as many changes and lines as a page may have.
func (p *Compare) addChanges(changes []objectdiff.Change) {
	counts := map[objectdiff.Kind]int{}
	shown, total := 0, 0

	for i, c := range changes {
		counts[c.Kind]++
		total += strings.Count(c.Diff, "\n")

		if i >= maxChanges {
			continue
		}

		change := Change{Level: changeLevels[c.Kind], Object: shorten(c.Object, maxLine), Kind: string(c.Kind)}

		for line := range strings.Lines(c.Diff) {
			if shown == maxLines {
				break
			}

			shown++

			text := shorten(strings.TrimSuffix(line, "\n"), maxLine)
			change.Lines = append(change.Lines, Line{Kind: lineKinds[line[0]], Text: text})
		}

		p.Changes = append(p.Changes, change)
	}

	p.Summary = fmt.Sprintf("%d to create, %d to change, %d to delete",
		counts[objectdiff.Created], counts[objectdiff.Changed], counts[objectdiff.Deleted])

	if shown < total {
		p.Cut = fmt.Sprintf("Only %d of %d lines are shown.", shown, total)
	}
}

// changeLevels are the levels of the kinds of changes.
var changeLevels = map[objectdiff.Kind]string{
	objectdiff.Created: levelGood, objectdiff.Changed: levelBusy, objectdiff.Deleted: levelBad,
}

// lineKinds are the kinds of the lines of a unified diff, by how they begin.
var lineKinds = map[byte]string{'+': "added", '-': "removed", '@': "hunk"}
