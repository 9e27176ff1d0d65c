package cli

import (
	"fmt"
	"strings"

	"github.com/capstan-project/capstan/controllers/objectdiff"
)

// lineStyles are those of the lines of a unified diff, by how they begin.
var lineStyles = map[byte]Style{'+': Green, '-': Red, '@': Cyan}

// PrintChanges prints changes, each followed by an empty line.
func PrintChanges(printer *Printer, changes []objectdiff.Change) {
	for _, c := range changes {
		printer.Printf("%s", printer.Paint(Yellow, fmt.Sprintf("%s would be %s:", c.Object, c.Kind)))

		for line := range strings.Lines(c.Diff) {
			printer.Printf("%s", printer.Paint(lineStyles[line[0]], strings.TrimSuffix(line, "\n")))
		}

		printer.Printf("")
	}
}
