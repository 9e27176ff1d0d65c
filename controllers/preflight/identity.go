package preflight

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Identity checks the name of a CoreProvider, and that there is only one resource for each provider
// of a cluster. No version or chart changes the result, so these checks come first.
func (c *Checker) Identity(ctx context.Context, provider v1alpha2.Provider) error {
	if err := c.coreName(provider); err != nil {
		return err
	}

	return c.singleInstance(ctx, provider)
}

func (*Checker) coreName(provider v1alpha2.Provider) error {
	if provider.ProviderType() != v1alpha2.CoreProviderType || provider.GetName() == v1alpha2.CoreProviderName {
		return nil
	}

	return &Error{
		Reason: v1alpha2.IncorrectCoreProviderNameReason,
		Message: fmt.Sprintf(
			"the CoreProvider must be named %s, not %s; create it with that name and delete this one",
			v1alpha2.CoreProviderName, provider.GetName()),
	}
}

// singleInstance accepts only the oldest resource of a provider, because the provider's CRDs and
// webhooks serve the whole cluster.
func (c *Checker) singleInstance(ctx context.Context, provider v1alpha2.Provider) error {
	list := provider.ProviderType().NewList()
	if err := c.Client.List(
		ctx,
		list,
		client.MatchingFields{NameField: provider.GetName()},
		client.UnsafeDisableDeepCopy,
	); err != nil {
		return err
	}

	instances := slices.DeleteFunc(list.GetItems(), func(p v1alpha2.Provider) bool {
		return !sameCluster(p, provider)
	})
	if len(instances) == 0 {
		return nil
	}

	oldest := slices.MinFunc(instances, func(a, b v1alpha2.Provider) int {
		return cmp.Or(
			a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time),
			cmp.Compare(a.GetNamespace(), b.GetNamespace()),
		)
	})
	if oldest.GetNamespace() == provider.GetNamespace() {
		return nil
	}

	return &Error{
		Reason:  v1alpha2.MoreThanOneProviderInstanceExistsReason,
		Waiting: true,
		Message: fmt.Sprintf(
			"%s %s already exists in namespace %s, and a cluster can have each provider only once; "+
				"delete one of the two",
			provider.ProviderType(), provider.GetName(), oldest.GetNamespace()),
	}
}
