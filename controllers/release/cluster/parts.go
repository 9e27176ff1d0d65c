package cluster

import (
	"slices"

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

// removePart returns a JSON value without its part at a path.
func removePart(from any, path fieldpath.Path) any {
	part, found := partAt(from, path[0])
	if !found {
		return from
	}

	if len(path) > 1 {
		part = removePart(part, path[1:])
	}

	switch from := from.(type) {
	case map[string]any:
		from[*path[0].FieldName] = part
		if len(path) == 1 {
			delete(from, *path[0].FieldName)
		}
	case []any:
		i := itemIndex(from, path[0])
		if len(path) == 1 {
			return slices.Delete(from, i, i+1)
		}

		from[i] = part
	}

	return from
}

// fieldName returns the name of a field in an object; empty for an item of a list.
func fieldName(element fieldpath.PathElement) string { return ptr.Deref(element.FieldName, "") }
