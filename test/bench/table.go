package main

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"
)

// Table is a table with texts. The columns from Numbers on are aligned to the right in Markdown.
type Table struct {
	Header  []string
	Rows    [][]string
	Numbers int
}

// Add adds a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Text returns the table with aligned columns.
func (t *Table) Text() string {
	out := &bytes.Buffer{}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)

	for _, row := range append([][]string{t.Header}, t.Rows...) {
		fmt.Fprintln(w, strings.TrimRight(strings.Join(row, "\t"), "\t"))
	}

	_ = w.Flush() // a buffer accepts everything

	return out.String()
}

// Markdown returns the table as Markdown.
func (t *Table) Markdown() string {
	out := &strings.Builder{}
	line := func(cells []string) { fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | ")) }

	line(t.Header)

	for i := range t.Header {
		if i < t.Numbers {
			out.WriteString("|---")
		} else {
			out.WriteString("|---:")
		}
	}

	out.WriteString("|\n")

	for _, row := range t.Rows {
		line(row)
	}

	return out.String()
}
