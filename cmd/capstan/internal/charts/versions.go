package charts

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"golang.org/x/mod/semver"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/catalog"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// availableVersion is a version in a provider's source.
type availableVersion struct {
	Version string `json:"version"`
	// Contract is empty if the newest metadata does not contain it.
	Contract string `json:"contract,omitempty"`
}

// open returns the source of a provider of the catalog, or that of its charts in --chart-repository.
func (o *listOptions) open(known *catalog.Catalog, name string) (catalog.Entry, *source.Source, error) {
	entry, err := cli.FindEntry(known, name)
	if err != nil {
		return catalog.Entry{}, nil, err
	}

	if o.repository != "" {
		repository, err := oci.ParseRepository(o.repository)
		if err != nil {
			return catalog.Entry{}, nil, fmt.Errorf("--chart-repository: %w", err)
		}

		client, err := o.registries.Client()
		if err != nil {
			return catalog.Entry{}, nil, err
		}

		from, err := source.NewArtifact(repository.Join(entry.Label()).String(), source.Provider(entry.Type, entry.Name),
			source.OptionsForClient(client))

		return entry, from, err
	}

	from, err := known.Open(entry, catalogAccess(o.registries.Client))

	return entry, from, err
}

// printVariables prints the variables of a version of a provider.
func (o *listOptions) printVariables(
	ctx context.Context, printer *cli.Printer, known *catalog.Catalog, name, version string,
) error {
	entry, from, err := o.open(known, name)
	if err != nil {
		return err
	}

	opened, err := fetch(ctx, entry.Label(), from, version)
	if err != nil {
		return o.explain(entry.Label(), err)
	}

	built, err := opened.build()
	if err != nil {
		return err
	}

	variables, err := chartgen.Variables(built)
	if err != nil {
		return err
	}

	// Required ones first.
	slices.SortStableFunc(variables, func(a, b chartgen.Variable) int {
		return cmp.Compare(strconv.FormatBool(b.Required), strconv.FormatBool(a.Required))
	})

	return cli.PrintList(printer, []string{"VARIABLE", "DESCRIPTION"}, variables, func(v chartgen.Variable) cli.Row {
		return cli.Row{Cells: []string{v.Name, v.Description}}
	})
}

// printVersions prints the versions of a provider.
func (o *listOptions) printVersions(
	ctx context.Context, printer *cli.Printer, known *catalog.Catalog, name string,
) error {
	entry, from, err := o.open(known, name)
	if err != nil {
		return err
	}

	versions, metadata, err := from.List(ctx)
	if err != nil {
		return o.explain(entry.Label(), err)
	}

	if !o.all {
		versions = newestPatches(versions)
	}

	available := cli.Map(versions, func(v source.Version) availableVersion {
		contract, _ := bundle.Contract(metadata, v.Name) // old versions are usually not listed any more
		return availableVersion{v.Name, contract}
	})

	return cli.PrintList(printer, []string{"VERSION", "CONTRACT"}, available, func(v availableVersion) cli.Row {
		return cli.Row{Cells: []string{v.Version, v.Contract}}
	})
}

// newestPatches returns the newest patch of each minor version. The versions must be
// ordered, newest first. If all are pre-releases, it returns all.
func newestPatches(versions []source.Version) []source.Version {
	released := slices.DeleteFunc(slices.Clone(versions), func(v source.Version) bool {
		return semver.Prerelease(v.Name) != ""
	})
	if len(released) == 0 {
		return versions
	}

	return slices.CompactFunc(released, func(a, b source.Version) bool {
		return semver.MajorMinor(a.Name) == semver.MajorMinor(b.Name)
	})
}
