package permissions

import (
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
		verbs: []string{"get"}, resources: "`configmaps`, `secrets`", names: theirNames, scope: "their namespaces",
		purpose: "read what the resource names: variables, credentials, keys, a kubeconfig, `spec.additionalManifests`",
		targets: func(i Installation) ([]target, error) { return i.named(), nil },
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

// named returns the objects that the resource names.
func (i Installation) named() []target {
	references := access.References(i.Provider)
	targets := make([]target, 0, len(references))

	for _, r := range references {
		resource := secretResource
		if r.Kind == "ConfigMap" {
			resource = configMapResource
		}

		targets = append(targets, target{namespace: r.Namespace, resource: resource, names: []string{r.Name}})
	}

	return targets
}

// here returns all objects of resources in the namespace of the provider's resource.
func (i Installation) here(resources ...schema.GroupResource) []target {
	targets := make([]target, 0, len(resources))
	for _, resource := range resources {
		targets = append(targets, target{namespace: i.Provider.GetNamespace(), resource: resource})
	}

	return targets
}
