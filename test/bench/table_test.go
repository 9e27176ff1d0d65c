package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRange(t *testing.T) {
	for name, test := range map[string]struct {
		values []float64
		want   Range
		text   string
	}{
		"of nothing":                   {nil, Range{}, ""},
		"of one value":                 {[]float64{2}, Range{2, 2, 2, 1}, "2.0"},
		"of an odd number of values":   {[]float64{3, 1, 2}, Range{2, 1, 3, 3}, "2.0 (1.0–3.0)"},
		"of an even number of values":  {[]float64{4, 1, 2, 3}, Range{2.5, 1, 4, 4}, "2.5 (1.0–4.0)"},
		"of values that round equally": {[]float64{1.01, 1.02, 1.03}, Range{1.02, 1.01, 1.03, 3}, "1.0"},
	} {
		t.Run(name, func(t *testing.T) {
			got := newRange(test.values)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}

			if text := got.String(1); text != test.text {
				t.Errorf("the text is %q, want %q", text, test.text)
			}
		})
	}
}

func TestRatios(t *testing.T) {
	for name, test := range map[string]struct {
		values, baselines []float64
		want              Range
	}{
		"are those of pairs, not of medians": {[]float64{1, 6, 2}, []float64{2, 6, 8}, Range{0.5, 0.25, 1, 3}},
		"leave out what has no partner":      {[]float64{1, 6}, []float64{2}, Range{0.5, 0.5, 0.5, 1}},
		"leave out baselines of 0":           {[]float64{1, 6}, []float64{0, 3}, Range{2, 2, 2, 1}},
		"of nothing are none":                {[]float64{1}, nil, Range{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, ratios(test.values, test.baselines)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTable(t *testing.T) {
	table := &Table{Header: []string{"stage", "time, s", "requests"}, Numbers: 1}
	table.Add("install", "5.25", "355")
	table.Add("upgrade of one", "1.5", "")

	const text = "stage           time, s  requests\ninstall         5.25     355\nupgrade of one  1.5\n"
	if diff := cmp.Diff(text, table.Text()); diff != "" {
		t.Error(diff)
	}

	const markdown = "| stage | time, s | requests |\n|---|---:|---:|\n" +
		"| install | 5.25 | 355 |\n| upgrade of one | 1.5 |  |\n"
	if diff := cmp.Diff(markdown, table.Markdown()); diff != "" {
		t.Error(diff)
	}
}

func TestGoalTable(t *testing.T) {
	table := goalTable([]goal{
		{Name: "requests", Limit: 250, Measured: newRange([]float64{250})},
		{Name: "ratio", Limit: 0.65, Places: 2, Measured: newRange([]float64{0.6, 0.66, 0.8})},
		{Name: "ratio to an operator that is not here", Limit: 0.6, Places: 2},
	})

	want := [][]string{
		{"requests", "250", "250", "met"},
		{"ratio", "0.65", "0.66 (0.60–0.80)", "missed"},
		{"ratio to an operator that is not here", "0.60", "", "not measured"},
	}
	if diff := cmp.Diff(want, table.Rows); diff != "" {
		t.Error(diff)
	}
}
