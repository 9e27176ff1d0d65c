package patches

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/policies"
)

// boundPolicies replaces annotations of published objects that allow more than the policies of the resource do: its
// author decides, not the publisher.
func boundPolicies(documents []*document, spec *v1alpha2.PoliciesSpec) error {
	for _, d := range documents {
		if !mayHavePolicies(d.text) {
			continue
		}

		bounded, err := exceeding(d, d.text, spec)
		if err != nil {
			return err
		}

		if len(bounded) == 0 {
			continue
		}

		if err := changeEach("bound the policies of", []*document{d}, func(object *kyaml.RNode) error {
			for _, key := range slices.Sorted(maps.Keys(bounded)) {
				if err := object.PipeE(kyaml.SetAnnotation(key, bounded[key])); err != nil {
					return err
				}
			}

			return nil
		}); err != nil {
			return err
		}

		// YAML has more ways to write a key than are worth changing.
		text, err := d.object.String()
		if err != nil {
			return err
		}

		if left, err := exceeding(d, []byte(text), spec); err != nil || len(left) > 0 {
			return unboundable(d)
		}
	}

	return nil
}

// mayHavePolicies reports whether the text of an object may have annotations with policies, whatever way YAML has to
// write their names.
func mayHavePolicies(text []byte) bool {
	return bytes.Contains(text, []byte("-policy")) || bytes.ContainsAny(text, `\!`)
}

// exceeding returns the annotations of an object that allow too much, with the values that they may have.
func exceeding(d *document, text []byte, spec *v1alpha2.PoliciesSpec) (map[string]string, error) {
	var object map[string]any
	if err := yaml.Unmarshal(text, &object); err != nil {
		return nil, nil //nolint:nilerr // what is not an object is refused when the release is installed
	}

	items, _ := object["items"].([]any)
	for _, item := range items {
		if len(policies.Bound(annotationsOf(item), spec)) > 0 {
			return nil, unboundable(d)
		}
	}

	return policies.Bound(annotationsOf(object), spec), nil
}

// annotationsOf returns the annotations of an object whose value is a text.
func annotationsOf(object any) map[string]string {
	found := map[string]string{}

	fields, _ := object.(map[string]any)
	metadata, _ := fields["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)

	for key, value := range annotations {
		if text, isText := value.(string); isText {
			found[key] = text
		}
	}

	return found
}

func unboundable(d *document) error {
	return &Error{Field: "spec.policies", Reason: fmt.Sprintf(
		"%s of the provider has annotations with policies that allow more than this field, and they cannot be replaced; "+
			"allow the same by the field, or use another version", d)}
}
