package watch

import (
	"cmp"
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/preflight"
)

// Kind creates the event handlers for the resources of one kind.
type Kind struct {
	// Cache reads provider resources, by the indexes of IndexProviders.
	Cache client.Reader
	// Cluster tells the clusters of providers apart.
	Cluster preflight.ClusterOf
	// Type is the kind, and Scope selects the resources that are reconciled.
	Type  v1alpha2.ProviderType
	Scope Scope
}

// enqueue returns a map function that enqueues those of the kind's resources for which concerns is
// true. It looks for them in an index, by the keys of the changed object.
func (k Kind) enqueue(
	field string, keys func(client.Object) []string, concerns func(v1alpha2.Provider, client.Object) bool,
) handler.MapFunc {
	return func(ctx context.Context, changed client.Object) []reconcile.Request {
		var requests []reconcile.Request

		for _, key := range keys(changed) {
			found, err := list(ctx, k.Cache, k.Type, field, key)
			if err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "Cannot list the resources that an event concerns", "kind", k.Type)
				return nil
			}

			for _, p := range found {
				if k.Scope.Includes(p) && concerns(p, changed) {
					requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)})
				}
			}
		}

		return requests
	}
}

// ConfigMaps enqueues the resources that use a ConfigMap.
func (k Kind) ConfigMaps() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(k.enqueue(keysField, inputKeys("ConfigMap"), usesConfigMap))
}

// usesConfigMap reports whether a resource uses a ConfigMap.
func usesConfigMap(p v1alpha2.Provider, changed client.Object) bool {
	return isSource(p, changed) || isAdditional(p, changed)
}

// Secrets enqueues the resources that use a Secret, for variables, for credentials, as a source or for
// access to their cluster.
func (k Kind) Secrets() handler.EventHandler {
	concerns := func(p v1alpha2.Provider, changed client.Object) bool {
		return hasVariables(p, changed) || hasCredentials(p, changed) || isSource(p, changed) ||
			hasKubeConfig(p, changed)
	}

	return handler.EnqueueRequestsFromMapFunc(k.enqueue(keysField, inputKeys("Secret"), concerns))
}

// inputKeys returns the keys of the resources that may use a ConfigMap or Secret.
func inputKeys(kind string) func(client.Object) []string {
	return func(changed client.Object) []string {
		namespace := changed.GetNamespace()
		return []string{objectKey(kind, namespace, changed.GetName()), selectorKey(namespace)}
	}
}

// isSource reports whether the resource's source selects a ConfigMap or Secret.
func isSource(p v1alpha2.Provider, changed client.Object) bool {
	fetch := p.GetSpec().FetchConfig
	if fetch == nil || fetch.Selector == nil || p.GetNamespace() != changed.GetNamespace() {
		return false
	}

	selector, err := metav1.LabelSelectorAsSelector(fetch.Selector)

	return err == nil && selector.Matches(labels.Set(changed.GetLabels()))
}

// isAdditional reports whether a ConfigMap holds the resource's additional manifests.
func isAdditional(p v1alpha2.Provider, changed client.Object) bool {
	manifests := p.GetSpec().AdditionalManifests

	return manifests != nil && manifests.Name == changed.GetName() &&
		cmp.Or(manifests.Namespace, p.GetNamespace()) == changed.GetNamespace()
}

// hasVariables reports whether a Secret holds the resource's variables.
func hasVariables(p v1alpha2.Provider, changed client.Object) bool {
	secret, named := p.GetSpec().VariablesSecret(p.GetNamespace())
	return named && secret == client.ObjectKeyFromObject(changed)
}

// hasCredentials reports whether a Secret holds the credentials for the resource's source, or the keys
// that it is verified with.
func hasCredentials(p v1alpha2.Provider, changed client.Object) bool {
	fetch := p.GetSpec().FetchConfig
	if fetch == nil || p.GetNamespace() != changed.GetNamespace() {
		return false
	}

	return fetch.SecretRef != nil && fetch.SecretRef.Name == changed.GetName() ||
		fetch.Verify != nil && fetch.Verify.SecretRef.Name == changed.GetName()
}

// hasKubeConfig reports whether a Secret holds the kubeconfig of the resource's cluster.
func hasKubeConfig(p v1alpha2.Provider, changed client.Object) bool {
	config := p.GetSpec().KubeConfig

	return config != nil && config.SecretRef.Name == changed.GetName() && p.GetNamespace() == changed.GetNamespace()
}
