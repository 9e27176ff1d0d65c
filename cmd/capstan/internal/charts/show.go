package charts

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/render"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// showOptions are the flags of `chart show`.
type showOptions struct {
	*cli.Options

	identity *Identity
	access   *AccessFlags
	output   *cli.OutputFlags
}

func newShowCommand(options *cli.Options) *cobra.Command {
	o := &showOptions{Options: options}
	cmd := &cobra.Command{
		Use:   "show {DIR[/VERSION] | CHART.tgz | oci://REGISTRY/PATH/CHART:VERSION}",
		Short: "Show the content and the origin of a chart",
		Long: `Show what a chart contains: the provider, its contract and source, its variables, images and
CustomResourceDefinitions. The chart can be a file, in a registry, or
built from a provider's folder.`,
		Example: `  capstan chart show infrastructure-aws-2.11.1.tgz
  capstan chart show oci://registry.example.com/capi/infrastructure-aws:2.11.1 -o yaml`,
		Args: cli.Arguments(1, 1, "a provider's folder, a chart or a reference"),
		RunE: cli.Run(o.run),
	}
	o.identity = AddIdentityFlags(cmd.Flags())
	o.access = AddAccessFlags(cmd.Flags())
	o.output = cli.AddOutputFlags(cmd.Flags())

	return cmd
}

// description describes a chart.
type description struct {
	Name              string   `json:"name"`
	Version           string   `json:"version"`
	Reference         string   `json:"reference,omitempty"`
	Digest            string   `json:"digest"`
	ProviderType      string   `json:"providerType,omitempty"`
	ProviderName      string   `json:"providerName,omitempty"`
	Contract          string   `json:"contract,omitempty"`
	Source            string   `json:"source,omitempty"`
	ContentID         string   `json:"contentID,omitempty"`
	RequiredVariables []string `json:"requiredVariables,omitempty"`
	OptionalVariables []string `json:"optionalVariables,omitempty"`
	Images            []string `json:"images,omitempty"`
	CRDs              []string `json:"crds,omitempty"`
}

func (o *showOptions) run(ctx context.Context, args []string) error {
	printer, err := o.output.Printer(o.Out)
	if err != nil {
		return err
	}

	d, err := o.open(ctx, args[0])
	if err != nil {
		return err
	}

	return printer.Print(d, func() error { return printer.Table(nil, d.rows()) })
}

// open describes the chart that an argument refers to.
func (o *showOptions) open(ctx context.Context, argument string) (*description, error) {
	if isReference(argument) {
		pulled, err := o.access.PullChart(ctx, argument, o.In)
		if err != nil {
			return nil, err
		}

		d, err := describe(pulled.Chart)
		if err != nil {
			return nil, err
		}

		d.Reference = pulled.Reference.String()
		d.Digest = pulled.Digest

		return d, nil
	}

	c, err := Open(ctx, argument, o.identity)
	if err != nil {
		return nil, err
	}

	archive, err := c.Archive()
	if err != nil {
		return nil, err
	}

	d, err := describe(c)
	if err != nil {
		return nil, err
	}

	d.Digest = chart.Digest(archive)

	return d, nil
}

// describe describes the content of a chart.
func describe(c *chart.Chart) (*description, error) {
	required, all, err := chartgen.RequiredVariables(c)
	if err != nil {
		return nil, err
	}

	images, err := render.Images(c, nil)
	if err != nil {
		return nil, err
	}

	annotations := c.Metadata.Annotations
	d := &description{
		Name:              c.Metadata.Name,
		Version:           c.Metadata.Version,
		ProviderType:      annotations[chartgen.AnnotationProviderType],
		ProviderName:      annotations[chartgen.AnnotationProviderName],
		Contract:          annotations[chartgen.AnnotationContract],
		Source:            annotations[chartgen.AnnotationSource],
		ContentID:         annotations[chartgen.AnnotationContentID],
		RequiredVariables: required,
		Images:            images,
	}

	for _, name := range all {
		if !slices.Contains(required, name) {
			d.OptionalVariables = append(d.OptionalVariables, name)
		}
	}

	for _, f := range chartgen.NameCRDs(c.CRDs) {
		d.CRDs = append(d.CRDs, strings.TrimSuffix(path.Base(f.Name), ".yaml"))
	}

	return d, nil
}

// rows returns one row per value. Only the first value of a list has the name of the list.
func (d *description) rows() []cli.Row {
	provider := d.ProviderType + " " + d.ProviderName
	if d.ContentID == "" {
		provider = "none: a plain Helm chart that was not built by Capstan"
	}

	var rows []cli.Row

	for _, field := range []struct {
		name   string
		values []string
	}{
		{"Chart", []string{d.Name + " " + d.Version}},
		{"Reference", []string{d.Reference}},
		{"Digest", []string{d.Digest}},
		{"Provider", []string{provider}},
		{"Contract", []string{d.Contract}},
		{"Source", []string{d.Source}},
		{"Content ID", []string{d.ContentID}},
		{"Required variables", d.RequiredVariables},
		{"Optional variables", d.OptionalVariables},
		{"Images", d.Images},
		{"CRDs", d.CRDs},
	} {
		name := field.name

		for _, value := range field.values {
			if value == "" {
				continue
			}

			rows = append(rows, cli.Row{Cells: []string{name, value}})
			name = ""
		}
	}

	return rows
}
