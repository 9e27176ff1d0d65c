package providers

import (
	"context"
	"fmt"

	"github.com/Masterminds/semver/v3"

	"github.com/capstan-project/capstan/chartgen/catalog"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// availableVersion is a version in a provider's source.
type availableVersion struct {
	Version string `json:"version"`
	// Contract is empty if the newest metadata does not contain it.
	Contract string `json:"contract,omitempty"`
}

// printVersions prints the versions of a provider of the catalog.
func (o *listOptions) printVersions(
	ctx context.Context, printer *cli.Printer, known *catalog.Catalog, name string,
) error {
	entry, err := cli.FindEntry(known, name)
	if err != nil {
		return err
	}

	from, err := known.Open(entry, o.registries.Catalog(o.In))
	if err != nil {
		return err
	}

	versions, metadata, err := from.List(ctx)
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
