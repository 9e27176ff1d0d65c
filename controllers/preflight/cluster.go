package preflight

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// ClusterOf returns an identifier of the cluster that a provider is installed into; equal ones mean the same
// cluster. A nil ClusterOf knows clusters only by the way to them, see v1alpha2.Cluster.
type ClusterOf func(v1alpha2.Provider) string

// Same reports whether two providers are installed into the same cluster.
func (f ClusterOf) Same(a, b v1alpha2.Provider) bool {
	if f == nil {
		f = v1alpha2.Cluster
	}

	return f(a) == f(b)
}

// Others returns the other providers of the provider's cluster. They must not be changed.
func (c *Checker) Others(ctx context.Context, provider v1alpha2.Provider) ([]v1alpha2.Provider, error) {
	var others []v1alpha2.Provider

	for _, t := range v1alpha2.ProviderTypes() {
		list := t.NewList()
		if err := c.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list %s resources: %w", t, err)
		}

		for _, p := range list.GetItems() {
			if p.GetUID() != provider.GetUID() && c.Cluster.Same(p, provider) {
				others = append(others, p)
			}
		}
	}

	return others, nil
}

// others returns Others without core.
func (c *Checker) others(ctx context.Context, provider v1alpha2.Provider) ([]v1alpha2.Provider, error) {
	others, err := c.Others(ctx, provider)
	isCore := func(p v1alpha2.Provider) bool { return p.ProviderType() == v1alpha2.CoreProviderType }

	return slices.DeleteFunc(others, isCore), err
}

// Named returns the providers of a type and name, in all namespaces, of the provider's cluster, which may be one of
// them. They must not be changed.
func (c *Checker) Named(
	ctx context.Context, provider v1alpha2.Provider, t v1alpha2.ProviderType, name string,
) ([]v1alpha2.Provider, error) {
	list := t.NewList()

	err := c.Client.List(ctx, list, client.MatchingFields{NameField: name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list %s resources: %w", t, err)
	}

	return slices.DeleteFunc(list.GetItems(), func(p v1alpha2.Provider) bool {
		return !c.Cluster.Same(p, provider)
	}), nil
}
