package preflight

import (
	"context"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/problem"
)

// Dependencies checks that the providers in spec.dependsOn are ready, and that none of them depends on the provider
// itself.
func (c *Checker) Dependencies(ctx context.Context, provider v1alpha2.Provider) error {
	path, err := c.cycle(ctx, provider, []string{v1alpha2.Label(provider)}, map[string]bool{})
	if err != nil {
		return err
	}

	if path != nil {
		return problem.Refuse(v1alpha2.DependencyCycleReason,
			"the provider depends on itself: %s; remove one of them from spec.dependsOn",
			strings.Join(path, " depends on "))
	}

	var waiting []string

	for _, label := range provider.GetSpec().DependsOn {
		dependency, err := c.labeled(ctx, provider, label)

		switch {
		case err != nil:
			return err
		case dependency == nil:
			waiting = append(waiting, label+", whose resource does not exist")
		case !StandingOf(dependency).Ready:
			waiting = append(waiting, v1alpha2.FullName(dependency))
		}
	}

	if len(waiting) == 0 {
		return nil
	}

	return problem.Await(v1alpha2.WaitingForDependenciesReason,
		"waiting for the providers in spec.dependsOn to become ready: %s", strings.Join(waiting, "; "))
}

// cycle returns a path of labels from the first label of a path, that of a provider, back to itself; nil if there is
// none. Labels that were visited before are on no such path.
func (c *Checker) cycle(
	ctx context.Context, provider v1alpha2.Provider, path []string, visited map[string]bool,
) ([]string, error) {
	// A provider need not name core. Whether it waits for core is known once it does.
	standing := StandingOf(provider)
	if path[0] == v1alpha2.CoreProviderName && standing.WaitsForCore && !standing.Ready {
		return append(path, path[0]), nil
	}

	for _, label := range provider.GetSpec().DependsOn {
		if label == path[0] {
			return append(path, label), nil
		}

		if visited[label] {
			continue
		}

		visited[label] = true

		dependency, err := c.labeled(ctx, provider, label)
		if err != nil {
			return nil, err
		}

		if dependency == nil {
			continue
		}

		found, err := c.cycle(ctx, dependency, append(slices.Clone(path), label), visited)
		if err != nil || found != nil {
			return found, err
		}
	}

	return nil, nil
}

// labeled returns the resource with a label in the cluster of a provider: the one that has installed it, before that
// the oldest; nil if there is none. It must not be changed.
func (c *Checker) labeled(ctx context.Context, provider v1alpha2.Provider, label string) (v1alpha2.Provider, error) {
	t, name := v1alpha2.ParseLabel(label)

	found, err := c.Named(ctx, provider, t, name)
	if err != nil {
		return nil, err
	}

	return preferred(found), nil
}
