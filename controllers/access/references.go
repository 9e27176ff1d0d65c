package access

import (
	"cmp"

	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Reference is an object that a resource names.
type Reference struct {
	// Kind is ConfigMap or Secret.
	Kind string
	types.NamespacedName
}

// References returns the objects that a resource names. What decides about them, such as watches and permissions,
// follows this list.
func References(provider v1alpha2.Provider) []Reference {
	spec, namespace := provider.GetSpec(), provider.GetNamespace()

	var references []Reference

	add := func(kind, namespace, name string) {
		references = append(references, Reference{kind, types.NamespacedName{Namespace: namespace, Name: name}})
	}

	if secret, named := spec.VariablesSecret(namespace); named {
		add("Secret", secret.Namespace, secret.Name)
	}

	if spec.KubeConfig != nil {
		add("Secret", namespace, spec.KubeConfig.SecretRef.Name)
	}

	if fetch := spec.FetchConfig; fetch != nil && fetch.SecretRef != nil {
		add("Secret", namespace, fetch.SecretRef.Name)
	}

	if fetch := spec.FetchConfig; fetch != nil && fetch.Verify != nil {
		add("Secret", namespace, fetch.Verify.SecretRef.Name)
	}

	if manifests := spec.AdditionalManifests; manifests != nil {
		add("ConfigMap", cmp.Or(manifests.Namespace, namespace), manifests.Name)
	}

	return references
}
