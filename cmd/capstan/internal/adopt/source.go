package adopt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// Source is a program whose providers Capstan can take over.
type Source interface {
	// Name of the program, the value of --installer.
	Name() string
	// Find finds what the program has installed in a cluster. It changes nothing.
	Find(ctx context.Context, cluster *cli.Cluster) (*Found, error)
}

// Found is what a program has installed.
type Found struct {
	Installations []Installation
	// Managed are those that are left out because Capstan manages them already.
	Managed []Installation
	// Before and After are what has to be done once, for all providers: before the first resource is applied, such
	// as stopping the program, and after the last provider is ready.
	Before, After []Step
}

// Installation is an installed provider.
type Installation struct {
	// Provider is the resource that adopts it: with its name, its namespace and the installed version. It need not
	// name a Secret with variables. If the program has resources of the same kinds, it is the one in the cluster.
	Provider v1alpha2.Provider
	// Problem is why the provider cannot be adopted; usually nil.
	Problem error
	// Warnings name what the resource does not take over.
	Warnings []string
	// After is what has to be done once the provider is ready, such as removing a finalizer of the program.
	After []Step
}

// Step is a part of the takeover.
type Step struct {
	// Description says what is done, for example "Remove the finalizer …".
	Description string
	// Do does it. It succeeds if it was done before.
	Do func(context.Context) error
}

// sources are the programs, in the order in which they are looked for.
func sources() []Source { return []Source{clusterctl{}, capiOperator{}} }

// names returns the values of --installer.
func names() []string {
	all := make([]string, 0, len(sources()))
	for _, s := range sources() {
		all = append(all, s.Name())
	}

	return all
}

// find finds the installations of the program with a name. With an empty name, it is the only one that has
// installed anything. There are none if Capstan manages all of them already.
func find(ctx context.Context, cluster *cli.Cluster, name string) (Source, *Found, error) {
	if name != "" && !slices.Contains(names(), name) {
		return nil, nil, fmt.Errorf("unknown --installer %q; use %s", name, strings.Join(names(), " or "))
	}

	var (
		source Source
		found  *Found
	)

	for _, s := range sources() {
		if name != "" && name != s.Name() {
			continue
		}

		current, err := s.Find(ctx, cluster)
		if err != nil {
			return nil, nil, fmt.Errorf("find the providers of %s: %w", s.Name(), err)
		}

		if len(current.Installations) == 0 && (len(current.Managed) == 0 || source != nil) {
			continue
		}

		if source != nil && len(found.Installations) > 0 {
			return nil, nil, fmt.Errorf("both %s and %s have installed providers; select one with --installer",
				source.Name(), s.Name())
		}

		source, found = s, current
	}

	if source == nil {
		return nil, nil, errors.New("no providers of " + strings.Join(names(), " or ") + " were found; select another " +
			"cluster with --kubeconfig or --context")
	}

	return source, found, nil
}

// selected returns the installations that the arguments name; all if there are none. Those that Capstan manages already
// are left out, so that the same command can be repeated.
func selected(found *Found, arguments []string) ([]Installation, error) {
	remaining := slices.DeleteFunc(slices.Clone(arguments), func(argument string) bool {
		return len(matching(found.Installations, argument)) == 0 && len(matching(found.Managed, argument)) == 1
	})
	if len(arguments) > 0 && len(remaining) == 0 {
		return nil, nil
	}

	chosen, err := choose(found.Installations, remaining)
	if err != nil {
		return nil, err
	}

	problems := make([]error, 0, len(chosen))
	for _, i := range chosen {
		problems = append(problems, i.Problem)
	}

	return chosen, errors.Join(problems...)
}

// choose returns the installations with the given labels, or names if they are unambiguous; all if there are none.
func choose(installations []Installation, arguments []string) ([]Installation, error) {
	wanted := map[string]bool{}

	for _, argument := range arguments {
		matching := matching(installations, argument)
		if len(matching) != 1 {
			return nil, fmt.Errorf("%s is not one of the installed providers that Capstan does not manage: %s", argument,
				cmp.Or(labels(installations), "there are none"))
		}

		wanted[matching[0]] = true
	}

	return slices.DeleteFunc(slices.Clone(installations), func(i Installation) bool {
		return len(arguments) > 0 && !wanted[v1alpha2.Label(i.Provider)]
	}), nil
}

// matching returns the labels of the installations that an argument can mean. A label takes precedence over a name.
func matching(installations []Installation, argument string) []string {
	var found []string

	for _, i := range installations {
		label := v1alpha2.Label(i.Provider)

		switch argument {
		case label:
			return []string{label}
		case i.Provider.GetName():
			found = append(found, label)
		}
	}

	return found
}

func labels(installations []Installation) string {
	all := make([]string, 0, len(installations))
	for _, i := range installations {
		all = append(all, v1alpha2.Label(i.Provider))
	}

	return strings.Join(all, ", ")
}
