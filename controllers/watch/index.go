package watch

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/access"
	"github.com/capstan-project/capstan/controllers/preflight"
)

// keysField is the index by which the cache finds the resources that an event may concern, so that
// the cost of an event grows with their number and not with the number of all resources.
const keysField = "capstan.keys"

// Keys shared by all resources in the same situation.
const (
	waitingKey = "waiting"
	remoteKey  = "remote"
)

// objectKey is the key of the resources that refer to an object.
func objectKey(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }

// selectorKey is the key of the resources that select their source by label in their namespace.
func selectorKey(namespace string) string { return objectKey("selector", namespace, "") }

// dependentKey is the key of the resources that depend on the provider with a label.
func dependentKey(label string) string { return "dependent/" + label }

// keysOf returns the keys of a resource.
func keysOf(o client.Object) []string {
	p, ok := o.(v1alpha2.Provider)
	if !ok {
		return nil
	}

	spec, namespace := p.GetSpec(), p.GetNamespace()
	keys := []string{objectKey("release", namespace, v1alpha2.ReleaseName(p))}

	if waits(p) {
		keys = append(keys, waitingKey)
	}

	for _, label := range spec.DependsOn {
		keys = append(keys, dependentKey(label))
	}

	if spec.KubeConfig != nil {
		keys = append(keys, remoteKey)
	}

	for _, r := range access.References(p) {
		keys = append(keys, objectKey(r.Kind, r.Namespace, r.Name))
	}

	if fetch := spec.FetchConfig; fetch != nil && fetch.Selector != nil {
		keys = append(keys, selectorKey(namespace))
	}

	return append(keys, certificateKeys(p)...)
}

// waits reports whether a resource may be waiting for something: it is not ready, or its newest
// generation has not been reconciled yet.
func waits(p v1alpha2.Provider) bool {
	return !v1alpha2.IsReady(p) || p.GetStatus().ObservedGeneration != p.GetGeneration()
}

// IndexProviders registers the indexes with the cache. It must be called before the cache starts.
func IndexProviders(ctx context.Context, indexer client.FieldIndexer) error {
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

// list returns the resources of a kind that an index holds, as they are in the cache: they must not
// be modified.
func list(
	ctx context.Context, cache client.Reader, t v1alpha2.ProviderType, field, key string,
) ([]v1alpha2.Provider, error) {
	found := t.NewList()
	err := cache.List(ctx, found, client.MatchingFields{field: key}, client.UnsafeDisableDeepCopy)

	return found.GetItems(), err
}
