package cli

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/capstan-project/capstan/controllers/object"
)

// Text returns a text for a terminal: without the control characters that components, registries and servers may have
// in names and errors, which could clear the screen or set the clipboard. Lines and tabs stay.
func Text(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}

		for _, printable := range object.Printable(string(r)) {
			return printable
		}

		return -1
	}, text)
}

// painted matches what Paint adds to a text.
var painted = regexp.MustCompile(`\x1b\[(0|1|31|32|33|36)m`)

// styledText returns a text for a terminal, with the styles that it has.
func styledText(text string) string {
	var b strings.Builder

	end := 0

	for _, at := range painted.FindAllStringIndex(text, -1) {
		b.WriteString(Text(text[end:at[0]]) + text[at[0]:at[1]])
		end = at[1]
	}

	b.WriteString(Text(text[end:]))

	return b.String()
}

// Size returns a number of bytes with a binary unit.
func Size(bytes int64) string {
	switch {
	case bytes >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	}

	return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
}
