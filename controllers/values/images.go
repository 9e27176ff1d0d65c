package values

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/limit"
	"github.com/capstan-project/capstan/controllers/problem"
)

// ImagesVariable is the provider's variable with clusterctl's image overrides.
const ImagesVariable = "images"

// allImages is the key, in clusterctl's image overrides and in the chart's values, of the override
// of all images.
const allImages = "all"

// unusable returns the problem of image overrides, and where they come from, e.g. the provider's Secret.
func unusable(where string, err error) error {
	return problem.Fail(v1alpha2.ComponentsImageOverrideErrorReason,
		"key %q of %s cannot be read: %v; correct clusterctl's image overrides in it, e.g. "+
			"{all: {repository: registry.example.com/mirror}}", ImagesVariable, where, err)
}

// imageOverrides are clusterctl's image overrides. The key is "all", a provider's label, or
// <label>/<image>.
type imageOverrides map[string]v1alpha2.ImageMeta

// maxImagePart is the maximum length of each part of an image reference in bytes, which is that of a whole reference:
// an override becomes a part of each image of a provider.
const maxImagePart = 512

// parseImageOverrides reads image overrides in YAML. Its errors do not quote the text.
func parseImageOverrides(text string) (imageOverrides, error) {
	if _, err := limit.Document(text); err != nil {
		return nil, errNoOverrides
	}

	var overrides imageOverrides
	if err := yaml.UnmarshalStrict([]byte(text), &overrides); err != nil {
		return nil, errNoOverrides
	}

	for _, o := range overrides {
		if max(len(o.Repository), len(o.Name), len(o.Tag)) > maxImagePart {
			return nil, fmt.Errorf("a repository, name or tag is longer than %d bytes", maxImagePart)
		}
	}

	return overrides, nil
}

var errNoOverrides = errors.New("each key needs a map of repository, name and tag")

// images returns the chart's value "images" for the overrides of the operator and the provider.
func (s *Schema) images(in Input) (map[string]any, error) {
	operators, err := parseImageOverrides(in.ImageOverrides)
	if err != nil {
		return nil, unusable("the operator's configuration", err)
	}

	providers, err := parseImageOverrides(in.Variables[ImagesVariable])
	if err != nil {
		return nil, unusable("the provider's Secret", err)
	}

	merged := imageOverrides{}
	maps.Copy(merged, operators)
	maps.Copy(merged, providers)

	return merged.values(s.Label)
}

// values returns the chart's value "images" for a provider: the overrides for all its images, and
// those for single images, which take precedence in the chart. Of the former, the provider's fields
// override those of "all".
func (o imageOverrides) values(label string) (map[string]any, error) {
	all := o[allImages]
	provider := o[label]

	chosen := imageOverrides{allImages: {
		Repository: cmp.Or(provider.Repository, all.Repository),
		Name:       cmp.Or(provider.Name, all.Name),
		Tag:        cmp.Or(provider.Tag, all.Tag),
	}}

	for key, override := range o {
		// The chart has no key for an image that is named "all".
		image, found := strings.CutPrefix(key, label+"/")
		if found && image != allImages {
			chosen[image] = override
		}
	}

	maps.DeleteFunc(chosen, func(_ string, override v1alpha2.ImageMeta) bool {
		return override == v1alpha2.ImageMeta{}
	})

	return toJSON(chosen)
}
