package providers

import (
	"context"
	"fmt"

	"github.com/Masterminds/semver/v3"
	"github.com/spf13/cobra"

	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/cmd/capstan/internal/charts"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// versionsOptions are the flags of `versions`.
type versionsOptions struct {
	*cli.Options

	catalog    *cli.CatalogFlags
	registries *charts.AccessFlags
	output     *cli.OutputFlags
	all        bool
}

// NewVersionsCommand returns `capstan versions`.
func NewVersionsCommand(options *cli.Options) *cobra.Command {
	o := &versionsOptions{Options: options}
	cmd := &cobra.Command{
		Use:   "versions PROVIDER",
		Short: "List the available versions of a provider with their contracts",
		Long: `List the versions in a provider's source, newest first: the newest patch release of each minor
version, without pre-releases.

PROVIDER is a label (infrastructure-aws), a type and name (infrastructure/aws), or a name that only
one provider has. A token for the server is read from the environment or the configuration file, as
by clusterctl: GITHUB_TOKEN, GITLAB_ACCESS_TOKEN. The flags for registries are for providers that
the configuration file has in one.`,
		Example: `  capstan versions infrastructure-aws
  capstan versions cluster-api --all -o json`,
		Args:              cli.Arguments(1, 1, "one provider"),
		ValidArgsFunction: cli.CompleteKnownProviders,
		RunE:              cli.Run(o.run),
	}
	o.catalog = cli.AddCatalogFlags(cmd.Flags())
	o.registries = charts.AddAccessFlags(cmd.Flags())
	o.output = cli.AddOutputFlags(cmd.Flags())
	cmd.Flags().BoolVar(&o.all, "all", false, "List every version, including pre-releases.")

	return cmd
}

// availableVersion is a version in a provider's source.
type availableVersion struct {
	Version string `json:"version"`
	// Contract is empty if the newest metadata does not contain it.
	Contract string `json:"contract,omitempty"`
}

func (o *versionsOptions) run(ctx context.Context, args []string) error {
	printer, err := o.output.Printer(o.Out)
	if err != nil {
		return err
	}

	known, err := o.catalog.Load()
	if err != nil {
		return err
	}

	entry, err := cli.FindEntry(known, args[0])
	if err != nil {
		return err
	}

	from, err := known.Open(entry, o.registries.Catalog(o.In))
	if err != nil {
		return err
	}

	versions, metadata, err := source.List(ctx, from)
	if err != nil {
		return fmt.Errorf("%s: %w", entry.Label(), err)
	}

	if !o.all {
		versions = newestPatches(versions)
	}

	available := make([]availableVersion, 0, len(versions))
	rows := make([]cli.Row, 0, len(versions))

	for _, v := range versions {
		contract, _ := metadata.Contract(v.Name) // old versions are usually not listed any more

		available = append(available, availableVersion{Version: v.Name, Contract: contract})
		rows = append(rows, cli.Row{Cells: []string{v.Name, contract}})
	}

	return printer.Print(available, func() error {
		return printer.Table([]string{"VERSION", "CONTRACT"}, rows)
	})
}

// newestPatches returns the newest patch of each minor version. The versions must be
// ordered, newest first. If all are pre-releases, it returns all.
func newestPatches(versions []source.Version) []source.Version {
	type minor struct{ major, minor uint64 }

	seen := map[minor]bool{}

	var newest []source.Version

	for _, offered := range versions {
		v, err := semver.NewVersion(offered.Name)
		if err != nil || v.Prerelease() != "" {
			continue
		}

		if m := (minor{v.Major(), v.Minor()}); !seen[m] {
			seen[m] = true

			newest = append(newest, offered)
		}
	}

	if len(newest) == 0 {
		return versions
	}

	return newest
}
