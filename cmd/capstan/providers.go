package main

import (
	"io"

	"github.com/spf13/cobra"
)

func providersCommand() *cobra.Command {
	o := &catalogOptions{}
	cmd := &cobra.Command{
		Use:   "providers",
		Short: "List the providers that are known, and where they are published",
		Long: `List the providers that can be installed by name: those that clusterctl knows, and over them those of the configuration file,
which are marked.`,
		Example: `  capstan providers
  capstan providers --config clusterctl.yaml -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.providers(cmd.OutOrStdout()) },
	}
	o.bind(cmd.Flags())

	return cmd
}

// knownProvider is a provider as it is printed.
type knownProvider struct {
	Type       string `json:"type"`
	Name       string `json:"name"`
	Label      string `json:"label"`
	URL        string `json:"url"`
	Configured bool   `json:"configured,omitempty"`
}

func (o *catalogOptions) providers(out io.Writer) error {
	c, err := o.load()
	if err != nil {
		return err
	}

	list := make([]knownProvider, 0, len(c.Entries))

	rows := make([][]string, 0, len(c.Entries))
	for _, e := range c.Entries {
		list = append(
			list,
			knownProvider{Type: string(e.Type), Name: e.Name, Label: e.Label(), URL: e.URL, Configured: e.Configured},
		)

		note := ""
		if e.Configured {
			note = "configured"
		}

		rows = append(rows, []string{string(e.Type), e.Name, e.URL, note})
	}

	return o.print(out, list, []string{"TYPE", "NAME", "SOURCE", "NOTE"}, rows)
}
