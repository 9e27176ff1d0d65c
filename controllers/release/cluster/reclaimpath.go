package cluster

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// partAt returns a part of a JSON value.
func partAt(from any, element fieldpath.PathElement) (any, bool) {
	if fields, isObject := from.(map[string]any); isObject && element.FieldName != nil {
		part, found := fields[*element.FieldName]
		return part, found
	}

	list, _ := from.([]any)
	if i := itemIndex(list, element); i >= 0 {
		return list[i], true
	}

	return nil, false
}

// itemIndex returns the index of an item of a list; -1 if there is none.
func itemIndex(list []any, element fieldpath.PathElement) int {
	switch {
	case element.Key != nil:
		return slices.IndexFunc(list, func(item any) bool { return hasKey(item, *element.Key) })
	case element.Value != nil:
		return slices.IndexFunc(list, func(item any) bool {
			return value.Equals(value.NewValueInterface(item), *element.Value)
		})
	}

	index := ptr.Deref(element.Index, -1)
	if index >= len(list) {
		return -1
	}

	return index
}

// hasKey reports whether an item of a list has a key. Parts of the key that have defaults, such as the protocol of a
// port, can be missing in the item.
func hasKey(item any, key value.FieldList) bool {
	fields, _ := item.(map[string]any)
	equal := 0

	for _, part := range key {
		actual, found := fields[part.Name]
		if !found {
			continue
		}

		if !value.Equals(value.NewValueInterface(actual), part.Value) {
			return false
		}

		equal++
	}

	return equal > 0
}

// withPart returns a JSON value, nil if there is none yet, with the part of another one that is at a path.
func withPart(to, from any, path fieldpath.Path) any {
	if len(path) == 0 {
		return runtime.DeepCopyJSONValue(from)
	}

	element := path[0]

	source, found := partAt(from, element)
	if !found {
		return to
	}

	existing, _ := partAt(to, element)

	part := withPart(existing, source, path[1:])
	if part == nil {
		return to
	}

	if element.FieldName != nil {
		fields, _ := to.(map[string]any)
		if fields == nil {
			fields = map[string]any{}
		}

		fields[*element.FieldName] = part

		return fields
	}

	return withItem(to, part, element)
}

// withItem returns a list, nil if there is none yet, with an item that has the key of an element.
func withItem(to, item any, element fieldpath.PathElement) any {
	if fields, isObject := item.(map[string]any); isObject && element.Key != nil {
		for _, part := range *element.Key {
			fields[part.Name] = part.Value.Unstructured()
		}
	}

	list, _ := to.([]any)
	if i := itemIndex(list, element); i >= 0 {
		list[i] = item
		return list
	}

	return append(list, item)
}
