package page

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/capstan-project/capstan/controllers/facts"
)

// Compare is the page with the differences between two states of a release.
type Compare struct {
	Frame
	Changes

	// ID and Label are those of the provider, and Path that of its page.
	ID, Label, Path string
	// Action is the path of the page, and From and To are what can be compared.
	Action   string
	From, To []Choice
	// Problem is why nothing can be compared; empty if it could.
	Problem string
	Command string
}

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
		Changes: NewChanges(c),
		ID:      ID(v.Kind, v.Namespace, v.Name),
		Label:   v.Label,
		Path:    frame.Base + providerPath(v),
		Action:  frame.Base + comparePath(v, 0, 0),
		Command: command(v, diffArguments(sides)...),
	}
	p.addChoices(sides, history)

	return p
}

// diffArguments returns the arguments of the command that prints a comparison.
func diffArguments(sides facts.Sides) []string {
	arguments := []string{"diff"}
	if sides.From == 0 {
		arguments = append(arguments, "--live")
	} else {
		arguments = append(arguments, "--baseline", strconv.Itoa(sides.From))
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
