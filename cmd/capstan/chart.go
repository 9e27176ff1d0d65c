package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/lint"
	"github.com/capstan-project/capstan/chartgen/render"
)

func chartCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "chart", Short: "Make and look at charts"}
	cmd.AddCommand(
		chartBuildCommand(),
		chartImagesCommand(),
		chartLintCommand(),
		chartPushCommand(),
		chartPullCommand(),
		chartShowCommand(),
	)

	return cmd
}

// chartBuild are the flags of `chart build`.
type chartBuild struct {
	from, output, crds, namespace string
}

func chartBuildCommand() *cobra.Command {
	o := &chartBuild{}
	cmd := &cobra.Command{
		Use:   "build --from DIR[/VERSION] [--output FILE|DIR] [--crds separate [--namespace NAMESPACE]]",
		Short: "Make a chart of a provider's components",
		Long: `Make a Helm chart of a provider's published components, and print its file and its digest.

DIR is a provider's folder in clusterctl's local-repository layout, named after the provider's label:
infrastructure-aws/v2.11.1/{infrastructure-components.yaml,metadata.yaml}. Without VERSION the newest is taken.

With --crds separate, CRDs go into a file <chart>-<version>-crds.yaml beside the chart, for kubectl apply --server-side, and not into
the chart: for providers whose CRDs make a release too large for Helm, and for namespaces other than the provider's default.`,
		Example: `  capstan chart build --from providers/infrastructure-aws/v2.11.1 --output charts/
  capstan chart build --from providers/infrastructure-azure --crds separate --namespace azure`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.from, "from", "", "the provider's folder, or one version of it (required)")
	flags.StringVarP(&o.output, "output", "o", ".", "a file, or a folder in which the chart gets its usual name")
	flags.StringVar(&o.crds, "crds", "chart", `where the CRDs go: into the "chart", or "separate" into a file beside it`)
	flags.StringVarP(
		&o.namespace,
		"namespace",
		"n",
		"",
		"the namespace whose conversion webhooks separate CRDs call (default: the provider's)",
	)

	_ = cmd.MarkFlagRequired("from")

	return cmd
}

func (o *chartBuild) run(ctx context.Context, out, warnings io.Writer) error {
	separate := o.crds == "separate"
	switch {
	case !separate && o.crds != "chart":
		return fmt.Errorf(`--crds is %q; give "chart" or "separate"`, o.crds)
	case !separate && o.namespace != "":
		return errors.New("--namespace is for CRDs in a file of their own; add --crds separate")
	}

	built, err := buildFrom(ctx, o.from)
	if err != nil {
		return err
	}

	file, err := chartFile(built, o.output)
	if err != nil {
		return err
	}

	if separate {
		crds, err := chartgen.JoinCRDs(built, o.namespace)
		if err != nil {
			return err
		}

		crdsFile := filepath.Join(filepath.Dir(file), strings.TrimSuffix(built.Filename(), ".tgz")+"-crds.yaml")
		if err := os.WriteFile(crdsFile, crds, 0o644); err != nil {
			return err
		}

		fmt.Fprintln(out, crdsFile)

		built = built.WithoutCRDs()
	}

	if err := errors.Join(warnOfSize(warnings, built), warnOfFindings(ctx, warnings, o.from)); err != nil {
		return err
	}

	archive, err := built.Archive()
	if err != nil {
		return err
	}

	if err := os.WriteFile(file, archive, 0o644); err != nil {
		return err
	}

	fmt.Fprintf(out, "%s\n%s\n", file, chart.Digest(archive))

	return nil
}

// warnOfSize says when plain Helm could not store a release of the chart.
func warnOfSize(warnings io.Writer, c *chart.Chart) error {
	size, err := render.ReleaseSize(c)
	if err != nil || size <= render.MaxReleaseSize {
		return err
	}

	remedy := "remove cluster templates from the provider's folder"
	if c.CRDs != nil {
		remedy = "build it with --crds separate"
	}

	fmt.Fprintf(
		warnings,
		"Warning: plain Helm cannot install %s: it would store a release of %d KiB, and Kubernetes takes %d KiB; %s. The operator stores no CRDs and is not concerned.\n",
		c.Filename(),
		size>>10,
		render.MaxReleaseSize>>10,
		remedy,
	)

	return nil
}

// openChart reads a chart's archive, or makes the chart of a provider's folder.
func openChart(ctx context.Context, from string) (*chart.Chart, error) {
	if !strings.HasSuffix(from, ".tgz") {
		return buildFrom(ctx, from)
	}

	file, err := os.Open(from)
	if err != nil {
		return nil, err
	}
	defer file.Close()

	c, err := chart.Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}

	return c, nil
}

// buildFrom makes the chart of a provider's folder, or of one of its version folders.
func buildFrom(ctx context.Context, from string) (*chart.Chart, error) {
	directory, release, folder, err := openRelease(ctx, from)
	if err != nil {
		return nil, err
	}

	b, err := directory.Fetch(ctx, release)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", folder, err)
	}

	built, err := chartgen.Build(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", folder, err)
	}

	return built, nil
}

// warnOfFindings tells how well the components keep the provider contracts, and how to read more.
func warnOfFindings(ctx context.Context, warnings io.Writer, from string) error {
	findings, err := lintFolder(ctx, from)
	if err != nil || lint.Count(findings, lint.Error)+lint.Count(findings, lint.Warning) == 0 {
		return err
	}

	fmt.Fprintf(
		warnings,
		"Warning: the components do not keep the provider contracts in all: %s. `capstan chart lint %s` says more.\n",
		lint.Summary(findings),
		from,
	)

	return nil
}

// chartFile is where the chart goes; its folder is there then.
func chartFile(c *chart.Chart, output string) (string, error) {
	if info, err := os.Stat(output); (err != nil || !info.IsDir()) && !strings.HasSuffix(output, "/") {
		return output, nil
	}

	return filepath.Join(output, c.Filename()), os.MkdirAll(output, 0o755)
}
