package providers

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// listOptions are the flags of `providers`.
type listOptions struct {
	*cli.Options

	catalog *cli.CatalogFlags
	output  *cli.OutputFlags
}

// NewListCommand returns `capstan providers`.
func NewListCommand(options *cli.Options) *cobra.Command {
	o := &listOptions{Options: options}
	cmd := &cobra.Command{
		Use:   "providers",
		Short: "List the known providers and where they are published",
		Long: `List the providers that can be installed by name: those that clusterctl knows and those of the
configuration file, which take precedence and are marked.`,
		Example: `  capstan providers
  capstan providers --config clusterctl.yaml -o json`,
		Args: cli.Arguments(0, 0, "no arguments"),
		RunE: cli.Run(o.run),
	}
	o.catalog = cli.AddCatalogFlags(cmd.Flags())
	o.output = cli.AddOutputFlags(cmd.Flags())

	return cmd
}

// knownProvider is a provider of the catalog.
type knownProvider struct {
	Type       string `json:"type"`
	Name       string `json:"name"`
	Label      string `json:"label"`
	URL        string `json:"url"`
	Configured bool   `json:"configured,omitempty"`
}

func (o *listOptions) run(context.Context, []string) error {
	printer, err := o.output.Printer(o.Out)
	if err != nil {
		return err
	}

	catalog, err := o.catalog.Load()
	if err != nil {
		return err
	}

	known := make([]knownProvider, 0, len(catalog.Entries))
	rows := make([]cli.Row, 0, len(catalog.Entries))

	for _, e := range catalog.Entries {
		known = append(known, knownProvider{
			Type:       string(e.Type),
			Name:       e.Name,
			Label:      e.Label(),
			URL:        e.URL,
			Configured: e.Configured,
		})

		note := ""
		if e.Configured {
			note = "configured"
		}

		rows = append(rows, cli.Row{Cells: []string{string(e.Type), e.Name, e.URL, note}})
	}

	return printer.Print(known, func() error {
		return printer.Table([]string{"TYPE", "NAME", "SOURCE", "NOTE"}, rows)
	})
}
