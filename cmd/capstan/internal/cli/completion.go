package cli

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/utils/ptr"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// completionTimeout limits the requests for one completion: a shell waits for it.
const completionTimeout = 3 * time.Second

// CompleteProvider completes a single argument with the providers of the management cluster.
func CompleteProvider(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}

	return CompleteProviders(cmd, args, word)
}

// CompleteProviders completes any number of arguments with the providers of the management cluster, each once.
func CompleteProviders(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return completeNames(existingProviders(cmd), args, word), cobra.ShellCompDirectiveNoFileComp
}

// CompleteRevision completes a provider, and then a revision of its release.
func CompleteRevision(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return CompleteProvider(cmd, args, word)
	}

	var found []cobra.Completion

	if p, err := FindOne(existingProviders(cmd), args[0]); err == nil {
		for _, r := range p.GetStatus().History {
			found = append(found, cobra.CompletionWithDesc(strconv.Itoa(r.Number), r.Version+", "+string(r.Status)))
		}
	}

	return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// CompleteProviderVersions is CompleteProviders for arguments of the form PROVIDER:VERSION, with the versions that
// providers can be upgraded to.
func CompleteProviderVersions(
	cmd *cobra.Command, args []string, word string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	providers := existingProviders(cmd)

	if name, _, found := strings.Cut(word, ":"); found {
		return completeUpgrades(providers, name), cobra.ShellCompDirectiveNoFileComp
	}

	for i, arg := range args {
		args[i], _, _ = strings.Cut(arg, ":")
	}

	found := completeNames(providers, args, word)
	for i, completion := range found {
		name, description, _ := strings.Cut(completion, "\t")
		found[i] = cobra.CompletionWithDesc(name+":", description)
	}

	return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// CompleteKnown returns what completes a single argument with the labels of the providers of the catalog, or a flag
// with the names of those of a type. It needs no management cluster.
func CompleteKnown(of v1alpha2.ProviderType) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}

		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		flags := AddCatalogFlags(set)
		copyFlags(set, cmd.Flags())

		known, err := flags.Load()
		if err != nil {
			cobra.CompDebugln(err.Error(), false)
			return nil, cobra.ShellCompDirectiveNoFileComp
		}

		var names []cobra.Completion

		for _, e := range known.Entries {
			switch of {
			case "":
				names = append(names, cobra.CompletionWithDesc(e.Label(), e.URL))
			case e.Type:
				names = append(names, cobra.CompletionWithDesc(e.Name, e.URL))
			}
		}

		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeNames returns the names of providers that complete a word, except those of the arguments: labels, or, if
// none fits, types with names (infrastructure/aws) and names.
func completeNames(providers []v1alpha2.Provider, args []string, word string) []cobra.Completion {
	for _, name := range []func(v1alpha2.Provider) string{
		v1alpha2.Label,
		func(p v1alpha2.Provider) string { return p.ProviderType().Name() + "/" + p.GetName() },
		v1alpha2.Provider.GetName,
	} {
		var found []cobra.Completion

		for _, p := range providers {
			if text := name(p); strings.HasPrefix(text, word) && !slices.Contains(args, text) {
				found = append(found, cobra.CompletionWithDesc(text,
					cmp.Or(ptr.Deref(p.GetStatus().InstalledVersion, ""), "not installed")+" in "+p.GetNamespace()))
			}
		}

		if len(found) > 0 {
			return found
		}
	}

	return nil
}

// completeUpgrades returns the arguments for all versions that the provider with a label can be upgraded to.
func completeUpgrades(providers []v1alpha2.Provider, label string) []cobra.Completion {
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

// existingProviders returns the providers of the management cluster.
func existingProviders(cmd *cobra.Command) []v1alpha2.Provider {
	return readCluster(cmd, func(ctx context.Context, c *Cluster) ([]v1alpha2.Provider, error) { return c.Providers(ctx) })
}

// readCluster reads something from the management cluster that the flags of a command select. It is empty if that
// fails, because a shell has no use for errors.
func readCluster[T any](cmd *cobra.Command, read func(context.Context, *Cluster) (T, error)) (found T) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()

	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags := AddClusterFlags(set)
	copyFlags(set, cmd.Flags())

	cluster, err := flags.Connect()
	if err == nil {
		found, err = read(ctx, cluster)
	}

	if err != nil {
		cobra.CompDebugln(err.Error(), false)
	}

	return found
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
