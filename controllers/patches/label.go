package patches

import (
	"fmt"

	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// label adds clusterctl's labels to all objects.
func label(documents []*document, provider string) error {
	for _, d := range documents {
		if d.deleted || d.Kind == "" {
			continue
		}

		if err := d.label(provider); err != nil {
			return fmt.Errorf("label %s: %w", d, err)
		}
	}

	return nil
}

func (d *document) label(provider string) error {
	object, err := d.parse()
	if err != nil {
		return err
	}

	err = object.PipeE(
		kyaml.Tee(kyaml.SetLabel(v1alpha2.ClusterctlProviderLabel, provider)),
		kyaml.SetLabel(v1alpha2.ClusterctlLabel, ""),
	)
	if err != nil {
		return err
	}

	return d.set(object)
}
