package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/values"
)

// Providers lists the provider resources in the namespace of --namespace, in clusterctl's order of
// installation, core first, and by name.
func (c *Cluster) Providers(ctx context.Context) ([]v1alpha2.Provider, error) {
	return c.providersIn(ctx, c.Namespace)
}

// providersIn lists the provider resources in a namespace; an empty one means all. If the user may not list some of the
// kinds, it returns the others and a *forbiddenError.
func (c *Cluster) providersIn(ctx context.Context, namespace string) ([]v1alpha2.Provider, error) {
	var (
		all       []v1alpha2.Provider
		forbidden forbiddenError
	)

	for _, t := range v1alpha2.ProviderTypes() {
		list := t.NewList()

		switch err := c.Client.List(ctx, list, client.InNamespace(namespace)); {
		case apierrors.IsForbidden(err):
			forbidden.kinds = append(forbidden.kinds, string(t))
			forbidden.err = cmp.Or(forbidden.err, err)
		case meta.IsNoMatchError(err):
			return nil, fmt.Errorf("the management cluster has no resource type %s; install Capstan there, "+
				"or select another cluster with --kubeconfig or --context", t)
		case err != nil:
			return nil, fmt.Errorf("list %s resources: %w", t, err)
		}

		items := list.GetItems() // by namespace, which tables do not show
		slices.SortStableFunc(items, func(a, b v1alpha2.Provider) int { return strings.Compare(a.GetName(), b.GetName()) })

		all = append(all, items...)
	}

	if forbidden.err != nil {
		return all, &forbidden
	}

	return all, nil
}

// None says that there are no providers in the namespace of --namespace, and how many others have.
func (c *Cluster) None(ctx context.Context) string {
	if c.Namespace == "" {
		return "There are no providers."
	}

	text := "There are no providers in namespace " + c.Namespace
	if all, err := c.providersIn(ctx, ""); err == nil {
		text += fmt.Sprintf("; others have %d", len(all))
	}

	return text + "."
}

// Visible is Providers without the kinds that the user may not list, which are named in a warning; empty for none.
func (c *Cluster) Visible(ctx context.Context) (all []v1alpha2.Provider, warning string, err error) {
	all, err = c.Providers(ctx)

	forbidden := new(forbiddenError)
	if !errors.As(err, &forbidden) || len(forbidden.kinds) == len(v1alpha2.ProviderTypes()) {
		return all, "", err
	}

	return all, "left out, because you may not list them: " + strings.Join(forbidden.kinds, ", "), nil
}

// forbiddenError means that the user may not list kinds of providers.
type forbiddenError struct {
	kinds []string
	// err is the answer of the API server for the first one.
	err error
}

func (e *forbiddenError) Error() string {
	return fmt.Sprintf("list %s resources: %v; ask an administrator for the ClusterRole view, which allows it",
		e.kinds[0], e.err)
}

// Unwrap returns the answer of the API server.
func (e *forbiddenError) Unwrap() error { return e.err }

// ClusterOf identifies the cluster that a provider is installed into, as far as is known without asking it; empty for
// that of the resource itself. As for the operator, what a server says of itself counts only within a namespace.
func ClusterOf(p v1alpha2.Provider) string {
	release := p.GetStatus().Release
	if p.GetSpec().KubeConfig == nil || release == nil || release.ClusterUID == "" {
		return v1alpha2.Cluster(p)
	}

	return p.GetNamespace() + "/" + release.ClusterUID
}

// AllProviders lists the provider resources in all namespaces; none if the cluster has no resource types for them.
func (c *Cluster) AllProviders(ctx context.Context) ([]v1alpha2.Provider, error) {
	if served, err := c.HasProviderKinds(); err != nil || !served {
		return nil, err
	}

	return c.providersIn(ctx, "")
}

// HasProviderKinds reports whether the cluster has resource types for providers: Capstan's, or those of
// cluster-api-operator, which have the same names.
func (c *Cluster) HasProviderKinds() (bool, error) {
	kind := v1alpha2.CoreProviderType.GroupVersionKind()

	_, err := c.Client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}

	if err != nil {
		return false, fmt.Errorf("look up the resource types of providers: %w", err)
	}

	return true, nil
}

// Find returns the provider that an argument names.
func (c *Cluster) Find(ctx context.Context, argument string) (v1alpha2.Provider, error) {
	found, err := c.FindAll(ctx, []string{argument})
	if err != nil {
		return nil, err
	}

	return found[0], nil
}

// FindAll returns the providers that the arguments name, each once, in the order of installation. Without arguments
// these are all.
func (c *Cluster) FindAll(ctx context.Context, arguments []string) ([]v1alpha2.Provider, error) {
	all, unlisted := c.Providers(ctx)
	if len(arguments) == 0 {
		return all, unlisted
	}

	found, err := Named(all, arguments)
	if err != nil && unlisted != nil { // it can be one of these
		return nil, unlisted
	}

	return found, err
}

// Named returns those of the providers that the arguments name, each once, in the same order.
func Named(all []v1alpha2.Provider, arguments []string) ([]v1alpha2.Provider, error) {
	wanted := map[string]bool{}

	for _, argument := range arguments {
		p, err := FindOne(all, argument)
		if err != nil {
			return nil, err
		}

		wanted[v1alpha2.FullName(p)] = true
	}

	return slices.DeleteFunc(all, func(p v1alpha2.Provider) bool { return !wanted[v1alpha2.FullName(p)] }), nil
}

// FindOne returns the one of the providers that an argument names.
func FindOne(all []v1alpha2.Provider, argument string) (v1alpha2.Provider, error) {
	identity := func(p v1alpha2.Provider) (v1alpha2.ProviderType, string) { return p.ProviderType(), p.GetName() }
	found := named(all, argument, identity)

	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, fmt.Errorf("%s is ambiguous: %s; use the kind or --namespace to select one", argument, describe(found))
	case len(all) == 0:
		return nil, fmt.Errorf("provider %s not found: there are no providers; create its resource, "+
			"or select another cluster or --namespace", argument)
	}

	if meant := similar(all, argument, identity); meant != "" {
		return nil, fmt.Errorf("provider %s not found; did you mean %s?", argument, meant)
	}

	return nil, fmt.Errorf("provider %s not found; the existing ones are: %s", argument, describe(all))
}

// similar returns what an argument may mean instead of things that have the type and the name of a provider; empty if
// there is nothing. Labels of the same type differ only in what follows it.
func similar[T any](all []T, argument string, identity func(T) (v1alpha2.ProviderType, string)) string {
	_, short := v1alpha2.ParseLabel(argument)
	before := strings.TrimSuffix(argument, short)

	var names []string

	for _, one := range all {
		t, own := identity(one)
		if name, ok := strings.CutPrefix(t.Label(own), before); ok {
			names = append(names, name)
		}

		if before == "" {
			names = append(names, own)
		}
	}

	if name := values.MostSimilar(short, names); name != "" {
		return before + name
	}

	return ""
}

// named returns those that an argument can mean of things that have the type and the name of a provider: by its label
// (infrastructure-aws), by type and name (infrastructureprovider/aws, infrastructure/aws), or by name. A label takes
// precedence over a name.
func named[T any](all []T, argument string, identity func(T) (v1alpha2.ProviderType, string)) []T {
	kind, name, qualified := strings.Cut(argument, "/")

	for _, matches := range []func(v1alpha2.ProviderType, string) bool{
		func(t v1alpha2.ProviderType, own string) bool { return !qualified && t.Label(own) == argument },
		func(t v1alpha2.ProviderType, own string) bool { return qualified && own == name && isKind(t, kind) },
		func(_ v1alpha2.ProviderType, own string) bool { return !qualified && own == argument },
	} {
		var found []T

		for _, one := range all {
			if matches(identity(one)) {
				found = append(found, one)
			}
		}

		if len(found) > 0 {
			return found
		}
	}

	return nil
}

// isKind accepts a provider's kind, its plural and cluster-api-operator's name of the type, in any
// case.
func isKind(t v1alpha2.ProviderType, word string) bool {
	kind := strings.ToLower(string(t))
	return slices.Contains([]string{kind, kind + "s", t.Name()}, strings.ToLower(word))
}

// describe lists providers with all names that a user can refer to them by, and counts those beyond MaxNamed.
func describe(providers []v1alpha2.Provider) string {
	names := Map(providers, func(p v1alpha2.Provider) string {
		return fmt.Sprintf("%s (%s)", v1alpha2.Label(p), v1alpha2.FullName(p))
	})

	return object.List(names, MaxNamed)
}

// MaxNamed bounds how many providers or objects a message names.
const MaxNamed = 10
