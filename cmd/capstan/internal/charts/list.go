package charts

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/chartgen/catalog"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// listOptions are the flags of `providers`.
type listOptions struct {
	*cli.Options

	catalog    *cli.CatalogFlags
	registries *accessFlags
	output     *cli.OutputFlags
	repository string
	all        bool
	variables  bool
}

// NewListCommand returns `capstan providers`.
func NewListCommand(options *cli.Options) *cobra.Command {
	o := &listOptions{Options: options}
	cmd := &cobra.Command{
		Use:   "providers [NAME[:VERSION]]",
		Short: "List the known providers, or the versions or variables of one",
		Long: `Without NAME, list the providers that can be installed by name, and where they
are published. Those of the configuration file are marked, and take precedence
over clusterctl's.

With NAME, list the newest patch release of each minor version with its
contract. NAME is that of the release (infrastructure-aws), a type and name
(infrastructure/aws), or a name that only one provider has.

With --variables, list the variables of a version, the required ones first;
without VERSION, those of the newest.

Tokens for servers are read as by clusterctl, from the environment or the
configuration file: GITHUB_TOKEN, GITLAB_ACCESS_TOKEN.`,
		Example: `  capstan providers
  capstan providers infrastructure-aws
  capstan providers infrastructure-aws:v2.11.1 --variables
  capstan providers cluster-api --all -o json`,
		Args:              cli.Arguments(0, 1, "at most one provider"),
		ValidArgsFunction: cli.CompleteKnown(""),
		RunE:              cli.Run(o.run),
	}
	o.catalog = cli.AddCatalogFlags(cmd.Flags())
	o.registries = addAccessFlags(cmd.Flags())
	o.output = cli.AddOutputFlags(cmd.Flags())
	cmd.Flags().BoolVar(&o.all, "all", false, "List every version of the provider, including pre-releases.")
	cmd.Flags().BoolVar(&o.variables, "variables", false, "List the variables of a version.")
	cmd.Flags().StringVar(&o.repository, "chart-repository", "",
		"Repository with charts, as oci://HOST[/PATH], to read instead of where providers are published.")
	cmd.MarkFlagsMutuallyExclusive("variables", "all")

	return cmd
}

func (o *listOptions) run(ctx context.Context, args []string) error {
	printer, err := o.output.Printer(o.Out)
	if err != nil {
		return err
	}

	known, err := o.catalog.Load()
	if err != nil {
		return err
	}

	if len(args) == 0 && !o.variables {
		return printProviders(printer, known)
	}

	name, version, versioned := strings.Cut(strings.Join(args, ""), ":")

	switch {
	case name == "":
		return errors.New("--variables is for one provider; name it, such as infrastructure-aws")
	case o.variables:
		return o.printVariables(ctx, printer, known, name, version)
	case versioned:
		return fmt.Errorf("a version is for --variables; add that, or leave out :%s", version)
	}

	return o.printVersions(ctx, printer, known, name)
}

// explain adds to the error of a source that cannot be reached how to read a mirror instead.
func (o *listOptions) explain(label string, err error) error {
	if o.repository == "" && transport.Is(err, transport.Unavailable) {
		return fmt.Errorf("%s: %w; to read a mirror instead, add --chart-repository", label, err)
	}

	return fmt.Errorf("%s: %w", label, err)
}

// knownProvider is a provider of the catalog.
type knownProvider struct {
	Type       string `json:"type"`
	Name       string `json:"name"`
	Label      string `json:"label"`
	URL        string `json:"url"`
	Configured bool   `json:"configured,omitempty"`
}

func printProviders(printer *cli.Printer, c *catalog.Catalog) error {
	known := cli.Map(c.Entries, func(e catalog.Entry) knownProvider {
		return knownProvider{string(e.Type), e.Name, e.Label(), e.URL, e.Configured}
	})

	return cli.PrintList(printer, []string{"TYPE", "NAME", "SOURCE", "NOTE"}, known, func(p knownProvider) cli.Row {
		note := ""
		if p.Configured {
			note = "configured"
		}

		return cli.Row{Cells: []string{p.Type, p.Name, p.URL, note}}
	})
}
