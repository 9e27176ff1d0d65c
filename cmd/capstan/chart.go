package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/source"
)

func chartCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "chart", Short: "Make and look at charts"}
	cmd.AddCommand(chartBuildCommand())
	return cmd
}

func chartBuildCommand() *cobra.Command {
	var from, output string
	cmd := &cobra.Command{
		Use:   "build --from DIR[/VERSION] [--output FILE|DIR]",
		Short: "Make a chart of a provider's components",
		Long: `Make a Helm chart of a provider's published components.

DIR is a provider's folder in clusterctl's local-repository layout, named after the provider's label:
infrastructure-aws/v2.11.1/{infrastructure-components.yaml,metadata.yaml}. Without VERSION the newest is taken.`,
		Example: "  capstan chart build --from providers/infrastructure-aws/v2.11.1 --output charts/",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			built, err := buildFrom(cmd.Context(), from)
			if err != nil {
				return err
			}
			file, digest, err := writeChart(built, output)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s\n%s\n", file, digest)
			return nil
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "the provider's folder, or one version of it (required)")
	cmd.Flags().StringVarP(&output, "output", "o", ".", "a file, or a folder in which the chart gets its usual name")
	_ = cmd.MarkFlagRequired("from")
	return cmd
}

// buildFrom makes the chart of a provider's folder, or of one of its version folders.
func buildFrom(ctx context.Context, from string) (*chart.Chart, error) {
	from, version := filepath.Clean(from), ""
	if base := filepath.Base(from); source.IsExact(base) {
		from, version = filepath.Dir(from), base
	}
	directory, err := source.NewDirectory(from)
	if err != nil {
		return nil, err
	}
	releases, err := directory.Releases(ctx)
	if err != nil {
		return nil, err
	}
	release, err := source.Pick(releases, version, "")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	bundle, err := directory.Fetch(ctx, release)
	if err == nil {
		var built *chart.Chart
		if built, err = chartgen.Build(bundle); err == nil {
			return built, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", filepath.Join(from, release.Name), err)
}

// writeChart writes the archive and says where it is and what its digest is.
func writeChart(c *chart.Chart, output string) (file, digest string, err error) {
	archive, err := c.Archive()
	if err != nil {
		return "", "", err
	}
	file = output
	if info, err := os.Stat(output); err == nil && info.IsDir() || strings.HasSuffix(output, "/") {
		if err := os.MkdirAll(output, 0o755); err != nil {
			return "", "", err
		}
		file = filepath.Join(output, c.Filename())
	}
	if err := os.WriteFile(file, archive, 0o644); err != nil {
		return "", "", err
	}
	return file, chart.Digest(archive), nil
}
