package permissions

import (
	"cmp"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/controllers/access"
)

var (
	configMapResource      = schema.GroupResource{Resource: "configmaps"}
	serviceAccountResource = schema.GroupResource{Resource: "serviceaccounts"}
)

// reads has the requests that are made with an account for what the resource names, in the cluster of
// the resource.
var reads = []row{
	{
		verbs: []string{"get"}, resources: "`secrets`", names: theirNames, scope: "their namespaces",
		purpose: "read the Secrets that the resource names: variables, credentials, keys, a kubeconfig",
		targets: Installation.namedSecrets,
	},
	{
		verbs: []string{"get"}, resources: "`configmaps`", names: "its name", scope: "its namespace",
		purpose: "read `spec.additionalManifests`",
		targets: Installation.additionalManifests,
	},
	{
		verbs: []string{"get", "list"}, resources: "`configmaps`, `secrets`", scope: releaseNamespace,
		purpose: "find the versions that `spec.fetchConfig.selector` selects",
		targets: func(i Installation) ([]target, error) {
			fetch := i.Provider.GetSpec().FetchConfig
			if fetch == nil || fetch.Selector == nil {
				return nil, nil
			}

			return i.here(configMapResource, secretResource), nil
		},
	},
	{
		verbs: []string{"get"}, resources: "`serviceaccounts`, `secrets`", scope: releaseNamespace,
		purpose: "read the account's pull secrets, if a registry with the provider asks for credentials",
		targets: func(i Installation) ([]target, error) {
			fetch := i.Provider.GetSpec().FetchConfig
			if fetch == nil || fetch.OCI == "" && fetch.Image == "" {
				return nil, nil
			}

			return i.here(serviceAccountResource, secretResource), nil
		},
	},
}

// namedSecrets returns the Secrets that the resource names.
func (i Installation) namedSecrets() ([]target, error) {
	spec := i.Provider.GetSpec()

	var targets []target

	if reference, found := access.VariablesSecret(i.Provider); found {
		targets = append(targets, target{
			namespace: reference.Namespace, resource: secretResource, names: []string{reference.Name},
		})
	}

	var names []string

	if fetch := spec.FetchConfig; fetch != nil && fetch.SecretRef != nil {
		names = append(names, fetch.SecretRef.Name)
	}

	if fetch := spec.FetchConfig; fetch != nil && fetch.Verify != nil {
		names = append(names, fetch.Verify.SecretRef.Name)
	}

	if spec.KubeConfig != nil {
		names = append(names, spec.KubeConfig.SecretRef.Name)
	}

	if len(names) > 0 {
		targets = append(targets, target{
			namespace: i.Provider.GetNamespace(), resource: secretResource, names: names,
		})
	}

	return targets, nil
}

// additionalManifests returns the ConfigMap of spec.additionalManifests.
func (i Installation) additionalManifests() ([]target, error) {
	reference := i.Provider.GetSpec().AdditionalManifests
	if reference == nil {
		return nil, nil
	}

	return []target{{
		namespace: cmp.Or(reference.Namespace, i.Provider.GetNamespace()),
		resource:  configMapResource,
		names:     []string{reference.Name},
	}}, nil
}

// here returns all objects of resources in the namespace of the provider's resource.
func (i Installation) here(resources ...schema.GroupResource) []target {
	targets := make([]target, 0, len(resources))
	for _, resource := range resources {
		targets = append(targets, target{namespace: i.Provider.GetNamespace(), resource: resource})
	}

	return targets
}
