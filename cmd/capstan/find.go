package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// find finds the provider that a person means: by clusterctl's label (infrastructure-aws), by kind
// and name (infrastructureprovider/aws, infrastructure/aws), or by its name where only one has it.
func (m *management) find(ctx context.Context, argument string) (v1alpha2.Provider, error) {
	all, err := m.providers(ctx)
	if err != nil {
		return nil, err
	}

	found, err := pick(all, argument)
	if err == nil && m.namespace() == "" && len(found) > 1 {
		err = fmt.Errorf("%s is ambiguous: %s; say which, with --namespace if need be", argument, labels(found))
	}

	if err != nil {
		return nil, err
	}

	return found[0], nil
}

// findAll finds the providers that are named; in any case each once, in the order in which
// providers are installed.
func (m *management) findAll(ctx context.Context, arguments []string) ([]v1alpha2.Provider, error) {
	wanted := map[string]bool{}

	for _, argument := range arguments {
		p, err := m.find(ctx, argument)
		if err != nil {
			return nil, err
		}

		wanted[nameOf(p)] = true
	}

	all, err := m.providers(ctx)

	return slices.DeleteFunc(all, func(p v1alpha2.Provider) bool { return !wanted[nameOf(p)] }), err
}

// pick finds those that an argument can mean; at least one if there is no error. A label says more
// than a name.
func pick(all []v1alpha2.Provider, argument string) ([]v1alpha2.Provider, error) {
	kind, name, qualified := strings.Cut(argument, "/")

	for _, means := range []func(v1alpha2.Provider) bool{
		func(p v1alpha2.Provider) bool { return !qualified && v1alpha2.Label(p) == argument },
		func(p v1alpha2.Provider) bool { return qualified && p.GetName() == name && isKind(p, kind) },
		func(p v1alpha2.Provider) bool { return !qualified && p.GetName() == argument },
	} {
		if found := slices.DeleteFunc(
			slices.Clone(all),
			func(p v1alpha2.Provider) bool { return !means(p) },
		); len(found) > 0 {
			return found, nil
		}
	}

	if len(all) == 0 {
		return nil, fmt.Errorf(
			"there is no provider %s, nor any other; create the resource of one, or name another cluster or --namespace",
			argument,
		)
	}

	return nil, fmt.Errorf("there is no provider %s; there are: %s", argument, labels(all))
}

// isKind takes a kind, its plural, or cluster-api-operator's name of the type, in any case.
func isKind(p v1alpha2.Provider, word string) bool {
	kind := strings.ToLower(string(p.ProviderType()))
	return slices.Contains([]string{kind, kind + "s", p.ProviderType().Name()}, strings.ToLower(word))
}

// labels names providers so that a person can name them too.
func labels(providers []v1alpha2.Provider) string {
	names := make([]string, 0, len(providers))
	for _, p := range providers {
		names = append(names, fmt.Sprintf("%s (%s)", v1alpha2.Label(p), nameOf(p)))
	}

	return strings.Join(names, ", ")
}

// nameOf is kind, namespace and name.
func nameOf(p v1alpha2.Provider) string {
	return fmt.Sprintf("%s %s/%s", p.ProviderType(), p.GetNamespace(), p.GetName())
}

// readiness is what a resource says of itself in a line.
func readiness(p v1alpha2.Provider) string {
	ready := conditions.Get(p, v1alpha2.ReadyCondition)
	switch {
	case ready == nil || p.GetStatus().ObservedGeneration != p.GetGeneration() && p.GetDeletionTimestamp().IsZero():
		return "not looked at by the operator yet"
	case conditions.IsReady(p):
		return ready.Message
	default:
		return fmt.Sprintf("%s: %s", ready.Reason, ready.Message)
	}
}

// oneProvider refuses no arguments, and more than so many.
func oneProvider(usage string, most int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < 1 || len(args) > most {
			return errors.New("give a provider: capstan " + usage)
		}

		return nil
	}
}

// someProviders refuses no arguments at all.
func someProviders(usage string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return errors.New("give at least one provider: capstan " + usage)
		}

		return nil
	}
}
