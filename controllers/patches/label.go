package patches

import (
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// label adds clusterctl's labels to all objects.
func label(documents []*document, provider string) error {
	return changeEach("label", documents, func(object *kyaml.RNode) error {
		return object.PipeE(
			kyaml.Tee(kyaml.SetLabel(v1alpha2.ClusterctlProviderLabel, provider)),
			kyaml.SetLabel(v1alpha2.ClusterctlLabel, ""),
		)
	})
}
