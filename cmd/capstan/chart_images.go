package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen/render"
	"github.com/capstan-project/capstan/controllers/values"
)

// chartImages are the flags of `chart images`.
type chartImages struct {
	registry, overrides, output string
}

func chartImagesCommand() *cobra.Command {
	o := &chartImages{}
	cmd := &cobra.Command{
		Use:   "images CHART.tgz|DIR[/VERSION]",
		Short: "List the images that a provider runs",
		Long: `List the images of all containers and init containers of a provider, one a line and sorted: what a mirror needs.

The flags show what the images become with the chart's value imageRegistry, and with clusterctl's image overrides: a file with a key
"images", as clusterctl's configuration has it.`,
		Example: `  capstan chart images infrastructure-aws-2.11.1.tgz
  capstan chart images providers/infrastructure-aws --image-registry mirror.example.com`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args[0], cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(
		&o.registry,
		"image-registry",
		"",
		"registry, as host[:port][/path], that takes the place of every image's",
	)
	flags.StringVar(&o.overrides, "images", "", "a file with clusterctl's image overrides")
	flags.StringVarP(&o.output, "output", "o", "text", "text or json")

	return cmd
}

func (o *chartImages) run(ctx context.Context, from string, out io.Writer) error {
	if o.output != "text" && o.output != "json" {
		return fmt.Errorf("--output is %q; give text or json", o.output)
	}

	c, err := openChart(ctx, from)
	if err != nil {
		return err
	}

	overrides, err := imageOverrides(o.overrides, c.Metadata.Name)
	if err != nil {
		return err
	}

	images, err := render.Images(c, map[string]any{"imageRegistry": o.registry, "images": overrides})
	if err != nil {
		return err
	}

	if o.output == "json" {
		return json.NewEncoder(out).Encode(append([]string{}, images...))
	}

	for _, image := range images {
		fmt.Fprintln(out, image)
	}

	return nil
}

// imageOverrides reads the image overrides of a file in clusterctl's format as the chart's value
// "images".
func imageOverrides(file, label string) (map[string]any, error) {
	if file == "" {
		return nil, nil
	}

	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}

	var config struct {
		Images json.RawMessage `json:"images"`
	}
	if err := yaml.Unmarshal(data, &config); err != nil {
		return nil, fmt.Errorf(`%s is not clusterctl's configuration, in YAML with a key "images": %w`, file, err)
	}

	overrides, err := values.Images(label, string(config.Images))
	if err != nil {
		return nil, fmt.Errorf(`%s: key "images": %w`, file, err)
	}

	return overrides, nil
}
