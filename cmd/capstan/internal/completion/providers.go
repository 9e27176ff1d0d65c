// Package completion completes arguments and flags of commands in shells: names of providers, namespaces and values.
package completion

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// timeout limits the requests for one completion: a shell waits for it.
const timeout = 3 * time.Second

// Provider completes a single argument with the providers of the management cluster.
func Provider(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}

	return Providers(cmd, args, word)
}

// Providers completes any number of arguments with the providers of the management cluster, each once.
func Providers(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return names(existing(cmd), args, word), cobra.ShellCompDirectiveNoFileComp
}

// ProviderVersions is Providers for arguments of the form PROVIDER:VERSION, with the versions that providers can be
// upgraded to.
func ProviderVersions(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	providers := existing(cmd)

	if name, _, found := strings.Cut(word, ":"); found {
		return upgrades(providers, name), cobra.ShellCompDirectiveNoFileComp
	}

	for i, arg := range args {
		args[i], _, _ = strings.Cut(arg, ":")
	}

	found := names(providers, args, word)
	for i, completion := range found {
		name, description, _ := strings.Cut(completion, "\t")
		found[i] = cobra.CompletionWithDesc(name+":", description)
	}

	return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// KnownProviders completes a single argument with the providers of the catalog, which needs no management cluster.
func KnownProviders(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}

	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags := cli.AddCatalogFlags(set)
	copyFlags(set, cmd.Flags())

	catalog, err := flags.Load()
	if err != nil {
		cobra.CompDebugln(err.Error(), false)
		return nil, cobra.ShellCompDirectiveNoFileComp
	}

	labels := make([]cobra.Completion, 0, len(catalog.Entries))
	for _, e := range catalog.Entries {
		labels = append(labels, cobra.CompletionWithDesc(e.Label(), e.URL))
	}

	return labels, cobra.ShellCompDirectiveNoFileComp
}

// names returns the names of providers that complete a word, except those of the arguments: labels, or, if none fits,
// types with names (infrastructure/aws) and names.
func names(providers []v1alpha2.Provider, args []string, word string) []cobra.Completion {
	for _, name := range []func(v1alpha2.Provider) string{
		v1alpha2.Label,
		func(p v1alpha2.Provider) string { return p.ProviderType().Name() + "/" + p.GetName() },
		v1alpha2.Provider.GetName,
	} {
		var found []cobra.Completion

		for _, p := range providers {
			if text := name(p); strings.HasPrefix(text, word) && !slices.Contains(args, text) {
				found = append(found, cobra.CompletionWithDesc(text, describe(p)))
			}
		}

		if len(found) > 0 {
			return found
		}
	}

	return nil
}

// describe returns a provider's version and namespace.
func describe(p v1alpha2.Provider) string {
	version := "not installed"
	if installed := p.GetStatus().InstalledVersion; installed != nil {
		version = *installed
	}

	return version + " in " + p.GetNamespace()
}

// upgrades returns the arguments for all versions that the provider with a label can be upgraded to.
func upgrades(providers []v1alpha2.Provider, label string) []cobra.Completion {
	var found []cobra.Completion

	for _, p := range providers {
		if v1alpha2.Label(p) != label {
			continue
		}

		for _, version := range p.GetStatus().AvailableUpgrades {
			found = append(found, label+":"+version.Version)
		}
	}

	return found
}

// existing returns the providers of the management cluster that the flags of a command select; none if it cannot be
// reached, because a shell has no use for errors.
func existing(cmd *cobra.Command) []v1alpha2.Provider {
	ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
	defer cancel()

	cluster, err := connect(cmd)
	if err != nil {
		cobra.CompDebugln(err.Error(), false)
		return nil
	}

	providers, err := cluster.Providers(ctx)
	if err != nil {
		cobra.CompDebugln(err.Error(), false)
	}

	return providers
}

// connect returns the management cluster that the flags of a command select.
func connect(cmd *cobra.Command) (*cli.Cluster, error) {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags := cli.AddClusterFlags(set)
	copyFlags(set, cmd.Flags())

	return flags.Connect()
}

// copyFlags sets the flags of a set to the values that they have been given in another one.
func copyFlags(to, from *pflag.FlagSet) {
	from.Visit(func(given *pflag.Flag) {
		flag := to.Lookup(given.Name)
		if flag == nil {
			return
		}

		var err error
		if list, isList := given.Value.(pflag.SliceValue); isList {
			err = flag.Value.(pflag.SliceValue).Replace(list.GetSlice())
		} else {
			err = flag.Value.Set(given.Value.String())
		}

		if err != nil {
			cobra.CompDebugln(err.Error(), false)
		}
	})
}
