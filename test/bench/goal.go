package main

import "fmt"

// goal is an upper limit for what was measured.
type goal struct {
	Name     string
	Limit    float64
	Places   int // decimal places
	Measured Range
}

// Met reports whether the median is within the limit.
func (g goal) Met() bool { return g.Measured.Count > 0 && g.Measured.Median <= g.Limit }

// goalTable returns a table of the goals, which shows what was not measured, too.
func goalTable(goals []goal) *Table {
	table := &Table{Header: []string{"goal", "at most", "measured", ""}, Numbers: 1}

	for _, g := range goals {
		result := "missed"

		switch {
		case g.Measured.Count == 0:
			result = "not measured"
		case g.Met():
			result = "met"
		}

		table.Add(g.Name, fmt.Sprintf("%.*f", g.Places, g.Limit), g.Measured.String(g.Places), result)
	}

	return table
}
