package values

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// ImagesKey is the key of the variables' Secret with clusterctl's image overrides, and the chart's
// value for them.
const ImagesKey = "images"

// allImages is the key, in clusterctl's overrides and in the chart's, of what holds for every
// image.
const allImages = "all"

// ImagesError says that the image overrides in the provider's Secret cannot be used.
type ImagesError struct{ Err error }

func (e *ImagesError) Error() string {
	return fmt.Sprintf(
		"key %q of the provider's Secret: %v; it holds clusterctl's image overrides, e.g. {all: {repository: registry.example.com/mirror}}",
		ImagesKey,
		e.Err,
	)
}

func (e *ImagesError) Unwrap() error { return e.Err }

// Images makes the chart's value "images" of clusterctl's overrides, in YAML: those of "all" with
// those of the provider's label over them, and those of <label>/<image>, which the chart puts over
// both. Other providers' overrides do not count.
func Images(label, overrides string) (map[string]any, error) {
	var config map[string]v1alpha2.ImageMeta
	if err := yaml.UnmarshalStrict([]byte(overrides), &config); err != nil {
		return nil, errors.New("not YAML of the expected form: each key needs a map of repository, name and tag")
	}

	all, own := config[allImages], config[label]

	chosen := map[string]v1alpha2.ImageMeta{allImages: {
		Repository: cmp.Or(own.Repository, all.Repository), Name: cmp.Or(own.Name, all.Name), Tag: cmp.Or(own.Tag, all.Tag),
	}}
	for key, override := range config {
		// the chart cannot tell an image called "all"
		if name, own := strings.CutPrefix(key, label+"/"); own && name != allImages {
			chosen[name] = override
		}
	}

	maps.DeleteFunc(chosen, func(_ string, override v1alpha2.ImageMeta) bool { return override == v1alpha2.ImageMeta{} })

	return plain(chosen)
}
