package preflight

import (
	"cmp"
	"context"
	"slices"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/problem"
)

// Identity checks the name of a CoreProvider, the namespace, and that no other resource has installed the provider in
// the same cluster. No version or chart changes the result, so these checks come first. recorded
// reports whether Helm's storage has a release of a resource whose status has none, because it was not
// written, or lost.
func (c *Checker) Identity(
	ctx context.Context, provider v1alpha2.Provider, recorded func(v1alpha2.Provider) bool,
) error {
	if err := c.coreName(provider); err != nil {
		return err
	}

	if err := c.besideOperator(provider); err != nil {
		return err
	}

	return c.singleInstance(ctx, provider, recorded)
}

func (*Checker) coreName(provider v1alpha2.Provider) error {
	if provider.ProviderType() != v1alpha2.CoreProviderType || provider.GetName() == v1alpha2.CoreProviderName {
		return nil
	}

	return problem.Refuse(v1alpha2.IncorrectCoreProviderNameReason,
		"the CoreProvider must be named %s, not %s; create it with that name and delete this one",
		v1alpha2.CoreProviderName, provider.GetName())
}

// besideOperator refuses to install a provider into the operator's own namespace, unless the resource accepts it: pods
// there may use any of its ServiceAccounts and Secrets, whatever the provider's account may do.
func (c *Checker) besideOperator(provider v1alpha2.Provider) error {
	namespace := provider.GetNamespace()

	if namespace != c.Namespace || isInstalled(provider) || v1alpha2.InstallsBeside(provider, namespace) ||
		!c.Cluster.Same(provider, provider.ProviderType().New()) {
		return nil
	}

	return problem.Refuse(v1alpha2.AccessDeniedReason,
		"%s %s is in namespace %s, which is the operator's, so its publisher could use the operator's ServiceAccount "+
			"and Secrets; create the resource in another namespace, or set the annotation %s: %[3]s on it to accept that",
		provider.ProviderType(), provider.GetName(), namespace, v1alpha2.InstallBesideAnnotation)
}

// singleInstance accepts the resource that has installed the provider, because the provider's CRDs and
// webhooks serve the whole cluster. While none has, it accepts all of them: a resource that cannot be
// installed, in whatever namespace, keeps no other from it. That Helm's storage has a release of one is a claim, which
// the resource may overrule.
func (c *Checker) singleInstance(
	ctx context.Context, provider v1alpha2.Provider, recorded func(v1alpha2.Provider) bool,
) error {
	instances, err := c.instances(ctx, provider)
	if err != nil {
		return err
	}

	hint := ""

	owner := oldest(instances, isInstalled)
	if owner == nil && len(instances) > 1 {
		owner = oldest(instances, func(p v1alpha2.Provider) bool {
			return recorded(p) && !v1alpha2.InstallsBeside(provider, p.GetNamespace())
		})
	}

	if owner == nil || owner.GetNamespace() == provider.GetNamespace() {
		return nil
	}

	if !isInstalled(owner) {
		hint = v1alpha2.InstallBesideHint(owner.GetNamespace())
	}

	return problem.Await(v1alpha2.MoreThanOneProviderInstanceExistsReason,
		"%s %s is already installed by the resource in namespace %s, and a cluster can have each provider "+
			"only once; delete one of the two%s",
		provider.ProviderType(), provider.GetName(), owner.GetNamespace(), hint)
}

// instances returns all resources of a provider in its cluster, the given one as it is. They must not
// be changed.
func (c *Checker) instances(ctx context.Context, provider v1alpha2.Provider) ([]v1alpha2.Provider, error) {
	named, err := c.Named(ctx, provider, provider.ProviderType(), provider.GetName())
	if err != nil {
		return nil, err
	}

	others := slices.DeleteFunc(named, func(p v1alpha2.Provider) bool {
		return p.GetNamespace() == provider.GetNamespace()
	})

	return append(others, provider), nil
}

// isInstalled reports whether a resource has installed its provider, successfully or not. That stays
// true until it is uninstalled.
func isInstalled(p v1alpha2.Provider) bool { return StandingOf(p).Installed }

// oldest returns the oldest of the resources that match, the first by namespace among those of the
// same second; nil if none matches.
func oldest(instances []v1alpha2.Provider, matches func(v1alpha2.Provider) bool) v1alpha2.Provider {
	var found v1alpha2.Provider

	for _, p := range instances {
		if matches(p) && (found == nil || byAge(p, found) < 0) {
			found = p
		}
	}

	return found
}

func byAge(a, b v1alpha2.Provider) int {
	return cmp.Or(
		a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time),
		cmp.Compare(a.GetNamespace(), b.GetNamespace()),
	)
}
