package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/Masterminds/semver/v3"
	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/chartgen/supply/source"
)

// versionsOptions are the flags of `versions`.
type versionsOptions struct {
	catalogOptions
	all bool
}

func versionsCommand() *cobra.Command {
	o := &versionsOptions{}
	cmd := &cobra.Command{
		Use:   "versions PROVIDER",
		Short: "List the versions of a provider, with their contracts",
		Long: `List the versions that a provider's source offers, newest first: of each minor version the newest patch, without pre-releases.

PROVIDER is a label (infrastructure-aws), a type and name (infrastructure/aws), or a name that only one provider has.
A token for the server is taken from the environment or the configuration file, as clusterctl does: GITHUB_TOKEN,
GITLAB_ACCESS_TOKEN.`,
		Example: `  capstan versions infrastructure-aws
  capstan versions cluster-api --all -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("give one provider: capstan versions PROVIDER")
			}

			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args[0], cmd.OutOrStdout())
		},
	}
	o.bind(cmd.Flags())
	cmd.Flags().BoolVar(&o.all, "all", false, "every version, pre-releases too")

	return cmd
}

// offeredVersion is a version as it is printed.
type offeredVersion struct {
	Version string `json:"version"`
	// Contract is empty where the newest metadata does not tell it.
	Contract string `json:"contract,omitempty"`
}

func (o *versionsOptions) run(ctx context.Context, provider string, out io.Writer) error {
	c, err := o.load()
	if err != nil {
		return err
	}

	entry, err := findEntry(c, provider)
	if err != nil {
		return err
	}

	from, err := c.Open(entry, nil)
	if err != nil {
		return err
	}

	releases, metadata, err := source.List(ctx, from)
	if err != nil {
		return fmt.Errorf("%s: %w", entry.Label(), err)
	}

	if !o.all {
		releases = newestPatches(releases)
	}

	list := make([]offeredVersion, 0, len(releases))

	rows := make([][]string, 0, len(releases))
	for _, r := range releases {
		contract, _ := metadata.Contract(r.Name) // old versions are no longer listed, as a rule
		list = append(list, offeredVersion{Version: r.Name, Contract: contract})
		rows = append(rows, []string{r.Name, contract})
	}

	return o.print(out, list, []string{"VERSION", "CONTRACT"}, rows)
}

// newestPatches keeps of each minor version the newest patch, and pre-releases only when there is
// nothing else. What is given is ordered newest first.
func newestPatches(releases []source.Version) []source.Version {
	seen := map[[2]uint64]bool{}

	var kept []source.Version

	for _, r := range releases {
		v, err := semver.NewVersion(r.Name)
		if err != nil || v.Prerelease() != "" {
			continue
		}

		if minor := [2]uint64{v.Major(), v.Minor()}; !seen[minor] {
			seen[minor] = true

			kept = append(kept, r)
		}
	}

	if kept == nil {
		return releases
	}

	return kept
}
