package controllers

import (
	"cmp"
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/preflight"
)

// keysField is the index under which the cache finds the resources that an event may concern, so
// that an event costs as much as those and not as much as all there are.
const keysField = "capstan.keys"

// keys that are the same for all resources they are true of.
const (
	isWaiting = "waiting"
	isRemote  = "remote"
)

// objectKey is the key of a resource that names an object.
func objectKey(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }

// selectorKey is the key of a resource whose source is whatever it selects in its namespace.
func selectorKey(namespace string) string { return objectKey("selector", namespace, "") }

// keysOf are a resource's keys. Its own name is in preflight.NameField.
func keysOf(o client.Object) []string {
	p, ok := o.(v1alpha2.Provider)
	if !ok {
		return nil
	}

	spec, namespace := p.GetSpec(), p.GetNamespace()

	keys := []string{objectKey("release", namespace, releaseName(v1alpha2.Label(p)))}
	if waits(p) {
		keys = append(keys, isWaiting)
	}

	if spec.KubeConfig != nil {
		keys = append(keys, isRemote)
	}

	if secret, named := spec.VariablesSecret(namespace); named {
		keys = append(keys, objectKey("Secret", secret.Namespace, secret.Name))
	}

	if manifests := spec.AdditionalManifests; manifests != nil {
		keys = append(keys, objectKey("ConfigMap", cmp.Or(manifests.Namespace, namespace), manifests.Name))
	}

	if fetch := spec.FetchConfig; fetch != nil && fetch.Selector != nil {
		keys = append(keys, selectorKey(namespace))
	}

	if fetch := spec.FetchConfig; fetch != nil && fetch.SecretRef != nil {
		keys = append(keys, objectKey("Secret", namespace, fetch.SecretRef.Name))
	}

	return keys
}

// indexProviders has the cache keep the indexes. It must come before the cache starts.
func indexProviders(ctx context.Context, indexer client.FieldIndexer) error {
	for _, t := range v1alpha2.ProviderTypes() {
		if err := indexer.IndexField(ctx, t.New(), keysField, keysOf); err != nil {
			return err
		}

		name := func(o client.Object) []string { return []string{o.GetName()} }
		if err := indexer.IndexField(ctx, t.New(), preflight.NameField, name); err != nil {
			return err
		}
	}

	return nil
}

// listed are the resources of a kind that an index has, as they are in the cache: they must not be
// changed.
func listed(
	ctx context.Context,
	cache client.Reader,
	t v1alpha2.ProviderType,
	field, key string,
) ([]v1alpha2.Provider, error) {
	list := t.NewList()
	err := cache.List(ctx, list, client.MatchingFields{field: key}, client.UnsafeDisableDeepCopy)

	return list.GetItems(), err
}
