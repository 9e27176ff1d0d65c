package charts

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen/render"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/controllers/values"
)

// imagesOptions are the flags of `chart images`.
type imagesOptions struct {
	*cli.Options

	output   *cli.OutputFlags
	identity *Identity
	registry string
	config   string
}

func newImagesCommand(options *cli.Options) *cobra.Command {
	o := &imagesOptions{Options: options}
	cmd := &cobra.Command{
		Use:   "images {DIR[/VERSION] | CHART.tgz}",
		Short: "List the images that a provider runs",
		Long: `List the images of all containers and init containers of a provider, one per line and sorted. A
mirror needs these images.

The flags show the images that result from the chart's value imageRegistry, and from clusterctl's
image overrides, the key "images" of clusterctl's configuration.`,
		Example: `  capstan chart images providers/infrastructure-aws
  capstan chart images infrastructure-aws-2.11.1.tgz --image-registry mirror.example.com`,
		Args: cli.Arguments(1, 1, "a provider's folder or a chart"),
		RunE: cli.Run(o.run),
	}
	flags := cmd.Flags()
	o.identity = AddIdentityFlags(flags)
	o.output = cli.AddOutputFlags(flags)
	flags.StringVar(
		&o.registry,
		"image-registry",
		"",
		"Registry, as host[:port][/path], that replaces that of every image.",
	)
	flags.StringVar(&o.config, "config", "", "Configuration file in clusterctl's format, for its image overrides.")

	return cmd
}

func (o *imagesOptions) run(ctx context.Context, args []string) error {
	printer, err := o.output.Printer(o.Out)
	if err != nil {
		return err
	}

	c, err := Open(ctx, args[0], o.identity)
	if err != nil {
		return err
	}

	overrides, err := imageOverrides(o.config, c.Metadata.Name)
	if err != nil {
		return err
	}

	images, err := render.Images(c, map[string]any{"imageRegistry": o.registry, "images": overrides})
	if err != nil {
		return err
	}

	return printer.Print(append([]string{}, images...), func() error {
		for _, image := range images {
			printer.Printf("%s", image)
		}

		return nil
	})
}

// imageOverrides reads the image overrides of a provider from a file in clusterctl's format, as the
// chart's value "images".
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
		return nil, fmt.Errorf(`%s is not a clusterctl configuration in YAML with a key "images": %w`, file, err)
	}

	overrides, err := values.Images(label, string(config.Images))
	if err != nil {
		return nil, fmt.Errorf(`%s: key "images": %w`, file, err)
	}

	return overrides, nil
}
