package report_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-project/capstan/test/bench/report"
)

func TestRange(t *testing.T) {
	for name, test := range map[string]struct {
		values []float64
		want   report.Range
		text   string
	}{
		"of nothing":                   {nil, report.Range{}, ""},
		"of one value":                 {[]float64{2}, report.Range{2, 2, 2, 1}, "2.0"},
		"of an odd number of values":   {[]float64{3, 1, 2}, report.Range{2, 1, 3, 3}, "2.0 (1.0–3.0)"},
		"of an even number of values":  {[]float64{4, 1, 2, 3}, report.Range{2.5, 1, 4, 4}, "2.5 (1.0–4.0)"},
		"of values that round equally": {[]float64{1.01, 1.02, 1.03}, report.Range{1.02, 1.01, 1.03, 3}, "1.0"},
	} {
		t.Run(name, func(t *testing.T) {
			got := report.NewRange(test.values)
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
		want              report.Range
	}{
		"are those of pairs, not of medians": {[]float64{1, 6, 2}, []float64{2, 6, 8}, report.Range{0.5, 0.25, 1, 3}},
		"leave out what has no partner":      {[]float64{1, 6}, []float64{2}, report.Range{0.5, 0.5, 0.5, 1}},
		"leave out baselines of 0":           {[]float64{1, 6}, []float64{0, 3}, report.Range{2, 2, 2, 1}},
		"of nothing are none":                {[]float64{1}, nil, report.Range{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, report.Ratios(test.values, test.baselines)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTable(t *testing.T) {
	table := &report.Table{Header: []string{"stage", "time, s", "requests"}, Numbers: 1}
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

func TestGoals(t *testing.T) {
	table := report.Goals([]report.Goal{
		{Name: "requests", Limit: 250, Measured: report.NewRange([]float64{250})},
		{Name: "ratio", Limit: 0.65, Places: 2, Measured: report.NewRange([]float64{0.6, 0.66, 0.8})},
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

func TestWrite(t *testing.T) {
	const begin, end = "<!-- begin life -->\n", "<!-- end life -->\n"

	const other = "<!-- begin other -->\nkept\n<!-- end other -->\n"

	file := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(file, []byte("# Page\n\n"+begin+"old\n"+end+other+"\nMore.\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	want := "# Page\n\n" + begin + "\nnew\n\n" + end + other + "\nMore.\n"

	for range 2 { // a second time, nothing changes
		if err := report.Write(file, "life", "\nnew\n"); err != nil {
			t.Fatal(err)
		}

		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Error(diff)
		}
	}

	for name, page := range map[string]string{
		"a page without the section":     "# Page\n" + other,
		"a section without an end":       begin,
		"a section with its end first":   end + begin,
		"a page with the section twice":  begin + end + begin + end,
		"a section with another's end":   begin + "<!-- end other -->\n",
		"a section with an empty marker": "<!-- begin -->\n" + end,
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			if got, err := report.Replace(page, "life", "new"); err == nil {
				t.Errorf("it returned %q", got)
			}
		})
	}
}
