package cli

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// preview is a client whose writes succeed and do nothing: a store keeps the charts that it finds in the
// chart repository in the cluster, too. It reads the cluster as if further providers were installed.
type preview struct {
	client.Client

	assumed []v1alpha2.Provider
}

// assume adds a provider with a contract.
func (c *preview) assume(provider v1alpha2.Provider, contract string) {
	assumed := provider.ProviderType().New()
	assumed.SetNamespace(provider.GetNamespace())
	assumed.SetName(provider.GetName())
	assumed.SetUID(types.UID(v1alpha2.Label(provider))) // distinguishes it from other providers
	provider.GetSpec().DeepCopyInto(assumed.GetSpec())

	assumed.GetStatus().Contract = &contract

	c.assumed = append(c.assumed, assumed)
}

// List adds the providers that are assumed. A cluster without the resource types of providers has none.
func (c *preview) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	providers, isProviders := list.(v1alpha2.ProviderList)

	err := c.Client.List(ctx, list, options...)
	if !isProviders || err != nil && !meta.IsNoMatchError(err) {
		return err
	}

	var items []runtime.Object

	for _, p := range providers.GetItems() {
		items = append(items, p)
	}

	for _, p := range c.assumed {
		if reflect.TypeOf(p.ProviderType().NewList()) == reflect.TypeOf(list) {
			items = append(items, p)
		}
	}

	return meta.SetList(list, items)
}

// Create does nothing.
func (*preview) Create(context.Context, client.Object, ...client.CreateOption) error { return nil }

// Update does nothing.
func (*preview) Update(context.Context, client.Object, ...client.UpdateOption) error { return nil }

// Patch does nothing.
func (*preview) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return nil
}

// Delete does nothing.
func (*preview) Delete(context.Context, client.Object, ...client.DeleteOption) error { return nil }
