package patches

import (
	"maps"
	"slices"

	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
)

// annotate adds annotations to the objects that do not have them.
func annotate(documents []*document, annotations map[string]string) error {
	if len(annotations) == 0 {
		return nil
	}

	return changeEach("annotate", documents, func(object *kyaml.RNode) error {
		present := object.GetAnnotations()

		for _, key := range slices.Sorted(maps.Keys(annotations)) {
			if _, annotated := present[key]; annotated {
				continue
			}

			if err := object.PipeE(kyaml.SetAnnotation(key, annotations[key])); err != nil {
				return err
			}
		}

		return nil
	})
}
