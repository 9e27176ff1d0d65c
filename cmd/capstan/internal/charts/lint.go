package charts

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/lint"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/cmd/capstan/internal/registries"
)

// lintOptions are the flags of `chart lint`.
type lintOptions struct {
	*cli.Options

	input    *lintInput
	findings *cli.FindingsFlags
}

func newLintCommand(options *cli.Options) *cobra.Command {
	o := &lintOptions{Options: options}
	cmd := &cobra.Command{
		Use:   "lint DIR|FILE.tgz|URL",
		Short: "Check what a provider publishes against the contracts of Cluster API",
		Long: `Check what a provider publishes against the contracts of Cluster API: that of clusterctl, and those of
infrastructure, machine pools, bootstrap configurations, control planes and IP address management.

The argument is one of these:

  * a provider's folder in clusterctl's local-repository layout, such as infrastructure-aws, or the folder of
    a version in it. Without a version the newest one is used.
  * a folder with the files of one version, such as the output of a release: set --name, and --type unless the
    components have the usual name.
  * the archive of a chart, FILE.tgz.
  * an address: https://github.com/OWNER/PROJECT/releases/tag/VERSION, or that of another web server, or
    oci://REGISTRY/PATH for a chart or an artifact. Set --type and --name for providers that clusterctl
    does not know.

The output formats sarif and github are for code scanning and for annotations of GitHub Actions. Findings
of a --baseline, and those that metadata.yaml accepts, do not count. The exit code is 2 if there is another
finding of the --fail-on level or a worse one, and 1 if the check is not possible.`,
		Example: `  capstan chart lint providers/infrastructure-aws/v2.11.1
  capstan chart lint out --name example --version v1.2.3 --output github --fail-on warning
  capstan chart lint https://github.com/kubernetes-sigs/cluster-api-provider-aws/releases/tag/v2.11.1
  capstan chart lint oci://registry.example.com/capi/infrastructure-aws:2.11.1`,
		Args: cli.Arguments(1, 1, "a folder, the archive of a chart, or an address"),
		RunE: cli.Run(o.run),
	}
	o.findings = cli.AddFindingsFlags(cmd.Flags())
	o.input = &lintInput{
		identity: addIdentityFlags(cmd.Flags()),
		access:   registries.AddAccessFlags(cmd.Flags()),
		catalog:  cli.AddCatalogFlags(cmd.Flags()),
		options:  options,
	}

	return cmd
}

func (o *lintOptions) run(ctx context.Context, args []string) error {
	report, err := o.findings.Report(o.Out, lint.Rules())
	if err != nil {
		return err
	}

	findings, err := o.input.lint(ctx, args[0])
	if err != nil {
		return err
	}

	return report.Print(args[0], findings)
}

// lintFolder checks a provider's folder, or a version folder in it. The files of the findings are
// paths that begin with path.
func lintFolder(ctx context.Context, path string) ([]lint.Finding, error) {
	folder, err := openFolder(ctx, path)
	if err != nil {
		return nil, err
	}

	b, err := folder.directory.Fetch(ctx, folder.release)
	// A missing file is a finding. Fetch returns the other files then.
	if err != nil && !errors.As(err, new(*bundle.InvalidError)) {
		return nil, err
	}

	return folder.lint(b, nil)
}

// lint checks the content of the folder. If the components are nil, errors in them are findings.
func (f *versionFolder) lint(b *bundle.Bundle, components *bundle.Components) ([]lint.Finding, error) {
	names, err := fileNames(f.path)
	if err != nil {
		return nil, err
	}

	file, err := f.directory.Components(names)
	if err != nil {
		return nil, fmt.Errorf("%s %w", f.path, err)
	}

	return lint.Folder{Path: f.path, Names: names, Components: file}.Lint(b, components), nil
}

func fileNames(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}

	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}

	return names, nil
}
