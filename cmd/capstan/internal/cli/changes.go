package cli

import (
	"fmt"
	"strings"

	"github.com/capstan-project/capstan/controllers/objectdiff"
)

// PrintChanges prints changes, each followed by an empty line.
func PrintChanges(printer *Printer, changes []objectdiff.Change) {
	for _, c := range changes {
		printer.Printf("%s", printer.Paint(Yellow, fmt.Sprintf("%s would be %s:", c.Object, c.Kind)))

		for line := range strings.Lines(c.Diff) {
			printer.Printf("%s", printer.Paint(lineStyle(line), strings.TrimSuffix(line, "\n")))
		}

		printer.Printf("")
	}
}

// lineStyle returns the style of a line of a unified diff.
func lineStyle(line string) Style {
	switch line[0] {
	case '+':
		return Green
	case '-':
		return Red
	case '@':
		return Cyan
	default:
		return Plain
	}
}
