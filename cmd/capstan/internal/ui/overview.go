package ui

import (
	"fmt"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/cmd/capstan/internal/view"
)

// Overview is the page with a line for each provider, the most urgent first.
type Overview struct {
	Frame

	// Counts is how many providers are in each state.
	Counts    string
	Providers []Card
}

func newOverview(frame Frame, providers []view.Provider) *Overview {
	o := &Overview{Frame: frame}
	counts := map[view.State]int{}

	for _, v := range providers {
		o.Providers = append(o.Providers, Card{v, frame})
		counts[v.Verdict.State]++
	}

	slices.SortStableFunc(o.Providers, func(a, b Card) int { return view.CompareStates(a.Provider, b.Provider) })

	var parts []string

	for _, state := range view.States {
		if counts[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[state], state))
		}
	}

	o.Counts = strings.Join(parts, ", ")

	return o
}
