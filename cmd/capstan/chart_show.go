package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/render"
)

// chartShow are the flags of `chart show`.
type chartShow struct {
	registry registryFlags
	output   string
}

func chartShowCommand() *cobra.Command {
	o := &chartShow{}
	cmd := &cobra.Command{
		Use:   "show CHART.tgz|DIR[/VERSION]|oci://REGISTRY/PATH/CHART:VERSION",
		Short: "Tell what a chart holds and what it was made from",
		Long: `Tell what a chart holds: the provider, its contract and where it comes from, variables, images and CustomResourceDefinitions. The chart
may be a file, a provider's folder or in a registry.`,
		Example: `  capstan chart show oci://registry.example.com/capi/infrastructure-aws:2.11.1
  capstan chart show infrastructure-aws-2.11.1.tgz -o yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args[0], cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	o.registry.bind(cmd.Flags())
	cmd.Flags().StringVarP(&o.output, "output", "o", "text", "text, json or yaml")

	return cmd
}

// shownChart is what is told of a chart.
type shownChart struct {
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

func (o *chartShow) run(ctx context.Context, from string, in io.Reader, out io.Writer) error {
	if !slices.Contains([]string{"text", "json", "yaml"}, o.output) {
		return fmt.Errorf("--output is %q; give text, json or yaml", o.output)
	}

	shown, err := o.open(ctx, from, in)
	if err != nil {
		return err
	}

	switch o.output {
	case "json":
		return json.NewEncoder(out).Encode(shown)
	case "yaml":
		data, err := yaml.Marshal(shown)
		if err == nil {
			_, err = out.Write(data)
		}

		return err
	}

	return shown.print(out)
}

func (o *chartShow) open(ctx context.Context, from string, in io.Reader) (*shownChart, error) {
	if isReference(from) {
		pulled, err := o.registry.pullChart(ctx, from, in)
		if err != nil {
			return nil, err
		}

		return newShownChart(pulled.Chart, pulled.Reference.String(), pulled.Digest)
	}

	c, err := openChart(ctx, from)
	if err != nil {
		return nil, err
	}

	archive, err := c.Archive()
	if err != nil {
		return nil, err
	}

	return newShownChart(c, "", chart.Digest(archive))
}

func newShownChart(c *chart.Chart, reference, digest string) (*shownChart, error) {
	required, all, err := chartgen.RequiredVariables(c)
	if err != nil {
		return nil, err
	}

	images, err := render.Images(c, nil)
	if err != nil {
		return nil, err
	}

	annotations := c.Metadata.Annotations
	shown := &shownChart{
		Name:              c.Metadata.Name,
		Version:           c.Metadata.Version,
		Reference:         reference,
		Digest:            digest,
		ProviderType:      annotations[chartgen.AnnotationProviderType],
		ProviderName:      annotations[chartgen.AnnotationProviderName],
		Contract:          annotations[chartgen.AnnotationContract],
		Source:            annotations[chartgen.AnnotationSource],
		ContentID:         annotations[chartgen.AnnotationContentID],
		RequiredVariables: required,
		Images:            images,
	}

	shown.OptionalVariables = slices.DeleteFunc(all, func(name string) bool { return slices.Contains(required, name) })
	for _, f := range c.CRDs {
		name := f.Name[strings.LastIndexByte(f.Name, '/')+1:]
		shown.CRDs = append(shown.CRDs, strings.TrimSuffix(name, ".yaml"))
	}

	return shown, nil
}

// print writes one line for each thing that is there.
func (s *shownChart) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(name string, values ...string) {
		for i, value := range values {
			if i > 0 {
				name = ""
			}

			if value != "" {
				fmt.Fprintf(w, "%s\t%s\n", name, value)
			}
		}
	}
	line("Chart", s.Name+" "+s.Version)
	line("Reference", s.Reference)
	line("Digest", s.Digest)

	if s.ContentID == "" {
		line("Provider", "none: a plain Helm chart, not made by Capstan")
	} else {
		line("Provider", s.ProviderType+" "+s.ProviderName)
	}

	line("Contract", s.Contract)
	line("Source", s.Source)
	line("Content ID", s.ContentID)
	line("Required variables", s.RequiredVariables...)
	line("Optional variables", s.OptionalVariables...)
	line("Images", s.Images...)
	line("CRDs", s.CRDs...)

	return w.Flush()
}
