package providers

import (
	"fmt"

	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/objectdiff"
	"github.com/capstan-project/capstan/controllers/offers"
)

// difference is what would change for a provider.
type difference struct {
	Provider string `json:"provider"`
	// From and To are versions of the provider.
	From string `json:"from,omitempty"`
	To   string `json:"to"`
	// SkippedMinors are the minor versions between the two that the provider has, such as "v1.26", oldest first.
	SkippedMinors []string `json:"skippedMinors,omitempty"`

	Objects     []objectdiff.Change `json:"objects,omitempty"`
	NewCRDs     []string            `json:"newCRDs,omitempty"`
	ChangedCRDs []string            `json:"changedCRDs,omitempty"`
	// DroppedCRDs are those of the installed version that the other one does not include. They are kept.
	DroppedCRDs []string `json:"droppedCRDs,omitempty"`
	// Findings are what the changes of CRDs would break.
	Findings []string `json:"findings,omitempty"`
}

func (d *difference) isEmpty() bool {
	return len(d.Objects) == 0 && len(d.NewCRDs) == 0 && len(d.ChangedCRDs) == 0 && len(d.DroppedCRDs) == 0
}

// summary returns the numbers of changes in one line.
func (d *difference) summary() string {
	if d.isEmpty() {
		return d.Provider + ": no changes"
	}

	counts := map[objectdiff.Kind]int{}
	for _, c := range d.Objects {
		counts[c.Kind]++
	}

	versions := d.To
	if d.From != "" && d.From != d.To {
		versions = d.From + " to " + d.To
	}

	return fmt.Sprintf(
		"%s %s: %s to create, %d to change, %d to delete; %s to create, %d to change",
		d.Provider,
		versions,
		object.Count(counts[objectdiff.Created], "object"),
		counts[objectdiff.Changed],
		counts[objectdiff.Deleted],
		object.Count(len(d.NewCRDs), "CRD"),
		len(d.ChangedCRDs),
	)
}

func (d *difference) print(printer *cli.Printer) error {
	return printer.Print(d, func() error {
		cli.PrintChanges(printer, d.Objects)

		for _, name := range d.NewCRDs {
			printCRD(printer, name, "created")
		}

		for _, name := range d.ChangedCRDs {
			printCRD(printer, name, "changed")
		}

		printDropped(printer, d.To, d.DroppedCRDs, d.Findings)

		if skips := offers.SkipsMessage(d.To, d.SkippedMinors); skips != "" {
			printer.Printf("%s", printer.Paint(cli.Yellow, skips))
		}

		printer.Printf("%s", d.summary())

		return nil
	})
}

func printCRD(printer *cli.Printer, name, change string) {
	line := fmt.Sprintf("CustomResourceDefinition %s would be %s", name, change)
	printer.Printf("%s", printer.Paint(cli.Yellow, line))
}
