package access

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// Uses reports whether a resource uses a ConfigMap or Secret, whose kind is given: it names the object, or selects it
// as its source.
func Uses(provider v1alpha2.Provider, kind string, object client.Object) bool {
	named := Reference{kind, client.ObjectKeyFromObject(object)}
	return slices.Contains(References(provider), named) || selects(provider, object)
}

// selects reports whether the source of a resource selects a ConfigMap or Secret.
func selects(provider v1alpha2.Provider, object client.Object) bool {
	fetch := provider.GetSpec().FetchConfig
	if fetch == nil || fetch.Selector == nil || provider.GetNamespace() != object.GetNamespace() {
		return false
	}

	selector, err := metav1.LabelSelectorAsSelector(fetch.Selector)

	return err == nil && selector.Matches(labels.Set(object.GetLabels()))
}
