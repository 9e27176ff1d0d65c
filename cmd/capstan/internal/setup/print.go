package setup

import (
	"fmt"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/controllers/object"
)

// print prints the plan. It shows no values of variables.
func (p *setupPlan) print(printer *cli.Printer) {
	printer.Printf("%s: %s", printer.Paint(cli.Bold, "cert-manager"), p.certManagerNote)
	printer.Printf("%s: %s", printer.Paint(cli.Bold, "operator"), p.operatorNote)

	for _, provider := range p.providers {
		provider.print(printer)
	}
}

// print prints the provider's version and where the values of its variables come from.
func (p *provider) print(printer *cli.Printer) {
	name := printer.Paint(cli.Bold, v1alpha2.Label(p.resource))

	if p.exists {
		printer.Printf("%s: %s exists", name, v1alpha2.FullName(p.resource))
		p.printChanged(printer)

		return
	}

	printer.Printf("%s: %s, to namespace %s", name, p.resource.GetSpec().Version, p.resource.GetNamespace())
	p.printVariables(printer)
}

// printVariables prints where the values of variables come from.
func (p *provider) printVariables(printer *cli.Printer) {
	defaults := 0

	for _, v := range p.variables {
		switch {
		case v.from != "":
			printer.Printf("  variable %s: from %s", v.name, v.from)
		case v.required:
			printer.Printf("%s", printer.Paint(cli.Yellow, "  variable "+v.name+": required, has no value"))
		default:
			defaults++
		}
	}

	if defaults > 0 {
		printer.Printf("  %s with defaults: capstan providers %s:%s --variables%s",
			object.Count(defaults, "more variable"), v1alpha2.Label(p.resource), p.resource.GetSpec().Version, p.flags)
	}
}

// printChanged prints which variables have another value than the given one.
func (p *provider) printChanged(printer *cli.Printer) {
	switch {
	case len(p.variables) == 0:
	case p.foreign != "":
		printer.Printf("%s", printer.Paint(cli.Yellow, fmt.Sprintf("  Secret %s has other values than the given ones, and "+
			"stays as it is, because its name is not %s: %s", p.foreign, p.secretKey().Name, p.names())))
	default:
		printer.Printf("  Secret %s: changes %s", p.secretKey(), p.names())
	}
}

// names returns the names of the variables, and where their values come from.
func (p *provider) names() string {
	names := cli.Map(p.variables, func(v variable) string { return fmt.Sprintf("%s (from %s)", v.name, v.from) })

	return strings.Join(names, ", ")
}
