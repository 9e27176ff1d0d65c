package adopt

import (
	"slices"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/adopt/variables"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/controllers/object"
)

// print prints how a provider would be adopted. It shows no values of variables.
func (p *proposal) print(printer *cli.Printer) {
	printer.Printf("")
	printer.Printf("%s", printer.Paint(cli.Bold, v1alpha2.FullName(p.Provider)+" "+p.Provider.GetSpec().Version))

	if p.exists {
		printer.Printf("  the resource exists")
	}

	for _, name := range p.known() {
		from := "its objects"
		if slices.Contains(p.fromEnvironment, name) {
			from = "the environment"
		}

		printer.Printf("  variable %s: from %s, to Secret %s", name, from, p.secret.Name)
	}

	for _, u := range p.unknown {
		printer.Printf("%s", printer.Paint(cli.Yellow, "  variable "+u.Name+": "+consequence(u)))
	}

	for _, w := range p.Warnings {
		printer.Printf("%s", printer.Paint(cli.Yellow, "  "+w))
	}

	if len(p.missing()) == 0 {
		p.difference.print(printer)
	}
}

// maxFields is how many fields of a CRD are printed.
const maxFields = 20

// print prints the changes of objects in full, and those of CRDs by field.
func (d difference) print(printer *cli.Printer) {
	cli.PrintChanges(printer, d.objects)

	for _, name := range d.newCRDs {
		printer.Printf("%s", printer.Paint(cli.Yellow, "  CustomResourceDefinition "+name+" would be created"))
	}

	for _, c := range d.crds {
		printer.Printf("%s", printer.Paint(cli.Yellow, "  CustomResourceDefinition "+c.Name+" would be changed: "+
			object.List(c.Fields, maxFields)))
	}

	changes := "no changes"
	if n := len(d.objects) + len(d.newCRDs) + len(d.crds); n > 0 {
		changes = cli.Count(n, "object") + " to change or to create"
	}

	printer.Printf("  %s; %s get the label and annotations of Helm releases, and %s those of Capstan",
		changes, cli.Count(d.marked, "object"), cli.Count(len(d.changedCRDs), "CustomResourceDefinition"))
}

// consequence says why a variable is unknown, and what that means.
func consequence(u variables.Unknown) string {
	if u.Required {
		return "required, but unknown: " + u.Reason
	}

	return "its default is used: " + u.Reason
}

// printSteps prints what else would be done.
func printSteps(printer *cli.Printer, found *Found, proposals []*proposal) {
	steps := slices.Clone(found.Before)
	for _, p := range proposals {
		steps = append(steps, p.After...)
	}

	for _, step := range append(steps, found.After...) {
		printer.Printf("%s: not done, because of --dry-run", step.Description)
	}
}
