package fetch

import (
	"maps"

	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/controllers/values"
)

// AddImages adds the image overrides of the operator's configuration to a provider's variables. For
// a key that both have, the provider's own comes first.
func (r *Resolver) AddImages(variables map[string]string) error {
	known, err := r.Config.Catalog()
	if err != nil || known.Images == "" {
		return err
	}

	var images, own map[string]any
	if err := yaml.Unmarshal([]byte(known.Images), &images); err != nil || images == nil {
		variables[values.ImagesKey] = known.Images
		return nil //nolint:nilerr // who reads the overrides says what is wrong with them
	}

	if err := yaml.Unmarshal([]byte(variables[values.ImagesKey]), &own); err != nil {
		return nil //nolint:nilerr // as above
	}

	maps.Copy(images, own)
	merged, err := yaml.Marshal(images)
	variables[values.ImagesKey] = string(merged)

	return err
}
