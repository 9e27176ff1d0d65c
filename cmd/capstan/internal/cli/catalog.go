package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/catalog"
)

// CatalogFlags are the flags of commands that look up providers by name.
type CatalogFlags struct{ config string }

// AddCatalogFlags adds --config to a command.
func AddCatalogFlags(flags *pflag.FlagSet) *CatalogFlags {
	f := &CatalogFlags{}
	flags.StringVar(&f.config, "config", "", "Configuration file in clusterctl's format. Default: clusterctl's own.")

	return f
}

// Load reads the catalog of providers.
func (f *CatalogFlags) Load() (*catalog.Catalog, error) { return catalog.LoadUser(f.config) }

// TypeName returns clusterctl's name of a type of providers, such as runtime-extension.
func TypeName(t v1alpha2.ProviderType) string {
	return strings.TrimSuffix(t.ComponentsFile(), "-"+bundle.ComponentsFile)
}

// FindEntry returns the provider of a catalog that an argument names.
func FindEntry(c *catalog.Catalog, argument string) (catalog.Entry, error) {
	identity := func(e catalog.Entry) (v1alpha2.ProviderType, string) { return e.Type, e.Name }
	found := named(c.Entries, argument, identity)

	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		meant := ""
		if name := similar(c.Entries, argument, identity); name != "" {
			meant = "did you mean " + name + "? "
		}

		return catalog.Entry{}, fmt.Errorf("unknown provider %s; %s`capstan providers` lists the known ones, a "+
			"configuration file can add others", argument, meant)
	}

	return catalog.Entry{}, fmt.Errorf("there are several providers with the name %s; use one of %s",
		argument, strings.Join(Map(found, catalog.Entry.Label), ", "))
}
