package removal

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/preflight"
)

// others returns the other providers of the cluster for which want is true. They must not be
// modified.
func (r *Removal) others(ctx context.Context, want func(v1alpha2.Provider) bool) ([]v1alpha2.Provider, error) {
	checker := &preflight.Checker{Client: r.Cache, Cluster: r.Cluster}
	others, err := checker.Others(ctx, r.Provider)

	return slices.DeleteFunc(others, func(p v1alpha2.Provider) bool { return !want(p) }), err
}

// visibleNames is namesOf for providers of all namespaces: those that the account must not list are
// counted.
func (r *Removal) visibleNames(ctx context.Context, providers []v1alpha2.Provider) string {
	if r.Target.Account == "" || r.Target.Remote {
		return namesOf(providers)
	}

	permitted := map[v1alpha2.ProviderType]bool{}

	for _, p := range providers {
		t := p.ProviderType()
		if _, asked := permitted[t]; !asked {
			permitted[t] = r.Target.Client.List(ctx, t.NewList(), client.Limit(1)) == nil
		}
	}

	visible := slices.DeleteFunc(slices.Clone(providers), func(p v1alpha2.Provider) bool {
		return !permitted[p.ProviderType()] && p.GetNamespace() != r.Provider.GetNamespace()
	})

	hidden := len(providers) - len(visible)
	if hidden == 0 {
		return namesOf(visible)
	}

	noun := "providers"
	if hidden == 1 {
		noun = "provider"
	}

	parts := []string{fmt.Sprintf("%d %s that %s must not list", hidden, noun, r.Target.Account)}
	if len(visible) > 0 {
		parts = append([]string{namesOf(visible)}, parts...)
	}

	return strings.Join(parts, " and ")
}

// namesOf lists the names of the first of the providers.
func namesOf(providers []v1alpha2.Provider) string {
	const most = 5

	names := make([]string, 0, len(providers))
	for _, p := range providers {
		names = append(names, v1alpha2.FullName(p))
	}

	// The cache lists in random order, and a message that changes would be written each time.
	slices.Sort(names)

	return object.List(names, most)
}
