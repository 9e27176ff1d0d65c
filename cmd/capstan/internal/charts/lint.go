package charts

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/contract"
)

// lintOptions are the flags of `lint`.
type lintOptions struct {
	*cli.Options

	input    *Input
	findings *cli.FindingsFlags
}

// NewLintCommand returns `capstan lint`.
func NewLintCommand(options *cli.Options) *cobra.Command {
	o := &lintOptions{Options: options}
	cmd := &cobra.Command{
		Use:   "lint {DIR[/VERSION] | CHART.tgz | URL | PROVIDER[:VERSION]}...",
		Short: "Check what a provider publishes against Cluster API's contracts",
		Long: `The contracts are those of clusterctl, infrastructure, machine pools, bootstrap
configurations, control planes and IP address management.

Each argument is one of these:

  * a folder in clusterctl's local-repository layout:
    infrastructure-aws/v2.11.1/{infrastructure-components.yaml, metadata.yaml},
    and without VERSION the newest one in it. If the names of folders do not
    tell the provider or the version, set --type, --name and --version;
  * the archive of a chart, CHART.tgz;
  * https://github.com/OWNER/PROJECT/releases/tag/VERSION, the address on another
    web server, or oci://REGISTRY/PATH of a chart or an artifact. Set --type and
    --name for providers that clusterctl does not know;
  * a provider, named as for "capstan providers"; without VERSION the newest.

The exit code is 2 for findings of the --fail-on level or worse, and 1 for other
errors.`,
		Example: `  capstan lint providers/infrastructure-aws/v2.11.1
  capstan lint providers/*
  capstan lint out --name example --version v1.2.3 --fail-on warning
  capstan lint https://github.com/kubernetes-sigs/cluster-api-provider-aws/releases/tag/v2.11.1
  capstan lint oci://registry.example.com/charts/infrastructure-aws:2.11.1
  capstan lint infrastructure-aws:v2.11.1`,
		Args: cli.Arguments(1, -1, "folders, archives of charts, addresses or providers"),
		RunE: cli.Run(o.run),
	}
	o.findings = cli.AddFindingsFlags(cmd.Flags())
	o.input = AddInputFlags(cmd.Flags())

	return cmd
}

func (o *lintOptions) run(ctx context.Context, args []string) error {
	report, err := o.findings.Report(o.Out)
	if err != nil {
		return err
	}

	if err := o.input.identity.checkArguments(args); err != nil {
		return err
	}

	var (
		findings []contract.Finding
		failed   []error
		subject  = args[0]
	)

	if len(args) > 1 {
		subject = fmt.Sprintf("at least one of the %d", len(args))
	}

	for _, address := range args {
		found, err := o.lint(ctx, address)
		findings, failed = append(findings, found...), append(failed, err)
	}

	if err := errors.Join(failed...); err != nil && len(args) == 1 {
		return err
	}

	return errors.Join(append(failed, report.Print(subject, findings))...)
}

// lint checks what an argument names.
func (o *lintOptions) lint(ctx context.Context, argument string) ([]contract.Finding, error) {
	opened, err := o.input.open(ctx, argument)
	if opened == nil || err != nil && !isMissing(err) { // a missing file is a finding
		return nil, err
	}

	return opened.lint(o.input.identity)
}

// isMissing reports whether a version lacks a file.
func isMissing(err error) bool {
	return transport.Is(err, transport.Invalid) || transport.Is(err, transport.NotFound)
}

func fileNames(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)

	return cli.Map(entries, os.DirEntry.Name), cli.FileError(err)
}
