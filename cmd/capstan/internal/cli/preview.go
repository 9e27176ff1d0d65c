package cli

import (
	"context"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// preview reads the cluster as if further providers were installed.
type preview struct {
	client.Client

	// operator is the operator's namespace; empty if it is not known.
	operator string
	assumed  []v1alpha2.Provider
	// withoutSecrets makes Secrets that the user may not read empty.
	withoutSecrets bool
}

// Get reads an object. There are no stored charts for users who may not read them.
func (c *preview) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	err := c.Client.Get(ctx, key, o, options...)

	_, isConfigMap := o.(*corev1.ConfigMap)
	if isConfigMap && key.Namespace == c.operator && apierrors.IsForbidden(err) {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}

	_, isSecret := o.(*corev1.Secret)
	if isSecret && c.withoutSecrets && apierrors.IsForbidden(err) {
		return nil
	}

	return err
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

	isSecrets := list.GetObjectKind().GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("SecretList")
	if isSecrets && c.withoutSecrets && apierrors.IsForbidden(err) {
		return nil
	}

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
