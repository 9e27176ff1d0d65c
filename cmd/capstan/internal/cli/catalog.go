package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/supply/catalog"
)

// CatalogFlags are the flags of commands that look up providers by name.
type CatalogFlags struct{ config string }

// AddCatalogFlags adds --config to a command.
func AddCatalogFlags(flags *pflag.FlagSet) *CatalogFlags {
	f := &CatalogFlags{}
	flags.StringVar(
		&f.config,
		"config",
		"",
		"Configuration file in clusterctl's format. Default: clusterctl's own, if it exists.",
	)

	return f
}

// Load reads the catalog of providers.
func (f *CatalogFlags) Load() (*catalog.Catalog, error) { return catalog.LoadUser(f.config) }

// FindEntry returns the provider of a catalog by its label (infrastructure-aws), by type and name
// (infrastructure/aws), or by its name if only one provider has that.
func FindEntry(c *catalog.Catalog, name string) (catalog.Entry, error) {
	var labels []string

	var found catalog.Entry

	for _, e := range c.Entries {
		byType := e.Type.Name() + "/" + e.Name
		byKind := string(e.Type) + "/" + e.Name

		if name == e.Label() || name == byType || strings.EqualFold(name, byKind) {
			return e, nil
		}

		if e.Name == name {
			found = e
			labels = append(labels, e.Label())
		}
	}

	switch {
	case len(labels) == 1:
		return found, nil
	case len(labels) > 1:
		return catalog.Entry{}, fmt.Errorf(
			"there are several providers with the name %s; use one of the labels %s",
			name,
			strings.Join(labels, ", "),
		)
	}

	kind, short := v1alpha2.ParseLabel(name)

	return catalog.Entry{}, fmt.Errorf(
		"unknown provider: %s %s; `capstan providers` lists the known ones, a configuration file can add others",
		kind,
		cmp.Or(short, name),
	)
}
