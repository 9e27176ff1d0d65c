package patches

import (
	"maps"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/kustomize/api/filters/patchstrategicmerge"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"
)

// strategicMerge applies a strategic merge patch. The result is nil if the patch deletes the object.
func strategicMerge(object *kyaml.RNode, fields map[string]any) (*kyaml.RNode, error) {
	patch, err := newNode(fields)
	if err != nil {
		return nil, err
	}

	filter := patchstrategicmerge.Filter{Patch: patch}

	// A directive concerns the whole object.
	if _, exists := fields["$patch"]; exists {
		return first(filter.Filter([]*kyaml.RNode{object}))
	}

	// kustomize walks through the whole object, which takes long for large ones. Only the fields in
	// the patch can change, so only those are merged, and then put back.
	names := slices.Sorted(maps.Keys(fields))
	part := kyaml.NewMapRNode(nil)

	for _, name := range append([]string{"apiVersion", "kind"}, names...) {
		if field := object.Field(name); field != nil {
			part.YNode().Content = append(part.YNode().Content, field.Key.YNode(), field.Value.YNode())
		}
	}

	if _, err := filter.Filter([]*kyaml.RNode{part}); err != nil {
		return nil, err
	}

	for _, name := range names {
		change := kyaml.Filter(kyaml.Clear(name))
		if field := part.Field(name); field != nil {
			change = kyaml.SetField(name, field.Value)
		}

		if err := object.PipeE(change); err != nil {
			return nil, err
		}
	}

	return object, nil
}

// mergePatch applies a JSON merge patch (RFC 7396).
func mergePatch(object *kyaml.RNode, fields map[string]any) (*kyaml.RNode, error) {
	data, err := object.MarshalJSON()
	if err != nil {
		return nil, err
	}

	var content any
	if err := utiljson.Unmarshal(data, &content); err != nil {
		return nil, err
	}

	return newNode(merge(content, fields))
}

// merge is the function MergePatch of RFC 7396, section 2. The library evanphx/json-patch does not
// conform: it removes nulls from maps inside of lists, which replace the list in the target as they
// are.
func merge(target, patch any) any {
	fields, isMap := patch.(map[string]any)
	if !isMap {
		return patch
	}

	result, isMap := target.(map[string]any)
	if !isMap {
		result = map[string]any{}
	}

	for name, value := range fields {
		if value == nil {
			delete(result, name)
		} else {
			result[name] = merge(result[name], value)
		}
	}

	return result
}

// newNode returns a value of JSON's types as kustomize represents it.
func newNode(value any) (*kyaml.RNode, error) {
	data, err := yaml.Marshal(value)
	if err != nil {
		return nil, err
	}

	return kyaml.Parse(string(data))
}
