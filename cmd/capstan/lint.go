package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/lint"
	"github.com/capstan-project/capstan/chartgen/supply/source"
)

// lintOptions are the flags of `chart lint`.
type lintOptions struct {
	output, failOn string
}

func chartLintCommand() *cobra.Command {
	o := lintOptions{}
	cmd := &cobra.Command{
		Use:   "lint DIR[/VERSION]",
		Short: "Check a provider's release against the contracts of Cluster API",
		Long: `Check what a provider publishes against the clusterctl provider contract and the contract of control planes.

DIR is a provider's folder in clusterctl's local-repository layout, named after the provider's label. Without VERSION the
newest is taken. The exit code is 1 when there is a finding of the --fail-on level or worse.`,
		Example: `  capstan chart lint providers/infrastructure-aws/v2.11.1
  capstan chart lint providers/infrastructure-aws --output github --fail-on warning`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("give the provider's folder, or one version of it: capstan chart lint DIR[/VERSION]")
			}

			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args[0], cmd.OutOrStdout())
		},
	}
	cmd.Flags().
		StringVarP(&o.output, "output", "o", "text", "how to print the findings: "+strings.Join(lint.Formats, ", "))
	cmd.Flags().
		StringVar(&o.failOn, "fail-on", string(lint.Error), "the level from which findings are a failure: error, warning")

	return cmd
}

func (o lintOptions) run(ctx context.Context, from string, out io.Writer) error {
	if !slices.Contains(lint.Formats, o.output) {
		return fmt.Errorf("--output %s is unknown; choose one of %s", o.output, strings.Join(lint.Formats, ", "))
	}

	if o.failOn != string(lint.Error) && o.failOn != string(lint.Warning) {
		return fmt.Errorf("--fail-on %s is unknown; choose error or warning", o.failOn)
	}

	findings, err := lintFolder(ctx, from)
	if err != nil {
		return err
	}

	if err := lint.Write(out, o.output, findings); err != nil {
		return err
	}

	if lint.Count(findings, lint.Error) > 0 || o.failOn == string(lint.Warning) && lint.Count(findings, lint.Warning) > 0 {
		return fmt.Errorf("%s does not keep the contracts: %s", from, lint.Summary(findings))
	}

	return nil
}

// lintFolder checks a provider's folder or one of its version folders. The findings' files are
// paths that begin with from.
func lintFolder(ctx context.Context, from string) ([]lint.Finding, error) {
	directory, release, folder, err := openRelease(ctx, from)
	if err != nil {
		return nil, err
	}

	b, err := directory.Fetch(ctx, release)
	// A missing file is a finding, and Fetch gives what is there.
	if missing := new(bundle.InvalidError); err != nil && !errors.As(err, &missing) {
		return nil, err
	}

	names, err := fileNames(folder)
	if err != nil {
		return nil, err
	}

	return inFolder(folder, names, append(lint.Names(b.Provider, names), lint.Bundle(b, nil)...)), nil
}

// openRelease finds a release by a provider's folder, of which it takes the newest, or by a version
// folder.
func openRelease(ctx context.Context, from string) (*source.Directory, source.Version, string, error) {
	path, version := filepath.Clean(from), ""
	if base := filepath.Base(path); source.IsExact(base) {
		path, version = filepath.Dir(path), base
	}

	directory, err := source.NewDirectory(path)
	if err != nil {
		return nil, source.Version{}, "", err
	}

	releases, err := directory.Versions(ctx)
	if err != nil {
		return nil, source.Version{}, "", err
	}

	release, err := source.Pick(releases, version, "")
	if err != nil {
		return nil, source.Version{}, "", fmt.Errorf("%s: %w", path, err)
	}

	return directory, release, filepath.Join(path, release.ID), nil
}

func fileNames(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)

	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}

	return names, err
}

// inFolder gives the findings' files their paths; the components have the name under which they are
// published.
func inFolder(folder string, names []string, findings []lint.Finding) []lint.Finding {
	components := slices.IndexFunc(names, func(name string) bool { return strings.HasSuffix(name, bundle.ComponentsFile) })
	for i, f := range findings {
		if f.File == bundle.ComponentsFile && components >= 0 {
			f.File = names[components]
		}

		findings[i].File = filepath.Join(folder, f.File)
	}

	return findings
}
