package objectdiff

import (
	"fmt"
	"strings"

	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// Print prints changes, each followed by an empty line.
func Print(printer *cli.Printer, changes []Change) {
	for _, c := range changes {
		printer.Printf("%s", printer.Paint(cli.Yellow, fmt.Sprintf("%s would be %s:", c.Object, c.Kind)))

		for line := range strings.Lines(c.Diff) {
			printer.Printf("%s", printer.Paint(lineStyle(line), strings.TrimSuffix(line, "\n")))
		}

		printer.Printf("")
	}
}

// lineStyle returns the style of a line of a unified diff.
func lineStyle(line string) cli.Style {
	switch line[0] {
	case '+':
		return cli.Green
	case '-':
		return cli.Red
	case '@':
		return cli.Cyan
	default:
		return cli.Plain
	}
}
