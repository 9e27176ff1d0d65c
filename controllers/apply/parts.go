package apply

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/capstan-project/capstan/controllers/objectdiff"
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

	switch from := from.(type) {
	case map[string]any:
		if len(path) == 1 {
			delete(from, *path[0].FieldName)
		} else {
			from[*path[0].FieldName] = removePart(part, path[1:])
		}
	case []any:
		i := itemIndex(from, path[0])
		if len(path) == 1 {
			return slices.Delete(from, i, i+1)
		}

		from[i] = removePart(part, path[1:])
	}

	return from
}

// fieldName returns the name of a field in an object; empty for an item of a list.
func fieldName(element fieldpath.PathElement) string { return ptr.Deref(element.FieldName, "") }

// partAtPath returns a part of a JSON value, and whether it exists.
func partAtPath(from any, path fieldpath.Path) (part any, found bool) {
	for _, element := range path {
		if from, found = partAt(from, element); !found {
			return nil, false
		}
	}

	return from, true
}

// overlaid returns a JSON value with another one on top, as an apply merges them. fields are those of the former, which
// tell what is merged by keys from what is replaced as a whole. Both values may be changed.
func overlaid(below, above any, fields *fieldpath.Set) any {
	if fields.Empty() {
		return above
	}

	switch above := above.(type) {
	case map[string]any:
		merged, isObject := below.(map[string]any)
		if !isObject {
			return above
		}

		for name, part := range above {
			merged[name] = overlaid(merged[name], part, fields.WithPrefix(fieldpath.FieldNameElement(name)))
		}

		return merged
	case []any:
		merged, _ := below.([]any)

		for _, item := range above {
			element, found := keyOf(item, fields)
			if i := itemIndex(merged, element); found && i >= 0 {
				merged[i] = overlaid(merged[i], item, fields.WithPrefix(element))
				continue
			}

			merged = append(merged, item)
		}

		return merged
	}

	return above
}

// keyOf returns what identifies an item in a list with keys, given the fields of the list, and whether there is such
// an item.
func keyOf(item any, fields *fieldpath.Set) (fieldpath.PathElement, bool) {
	for element := range fields.Members.All() {
		if element.Index == nil && itemIndex([]any{item}, element) == 0 {
			return element, true
		}
	}

	return fieldpath.PathElement{}, false
}

// namedParts matches the parts of a field as the API server names it, such as spec.containers[0].env.
var namedParts = regexp.MustCompile(`[^.\[\]]+|\[[^\]]*\]`)

// namedPath returns the path of a field that the API server names in an object, whose fields are given. It ends at the
// list for an item that has no key.
func namedPath(named string, in any, fields *fieldpath.Set) fieldpath.Path {
	path := fieldpath.Path{}

	for _, part := range namedParts.FindAllString(named, -1) {
		element := fieldpath.FieldNameElement(strings.Trim(part, "[]"))

		if list, isList := in.([]any); isList {
			i, err := strconv.Atoi(*element.FieldName)
			if err != nil || i < 0 || i >= len(list) {
				return path
			}

			key, found := keyOf(list[i], fields)
			if !found {
				return path
			}

			element = key
		}

		path = append(path, element)
		in, _ = partAt(in, element)
		fields = fields.WithPrefix(element)
	}

	return path
}

// pointerOf returns the JSON pointer of a part of a JSON value.
func pointerOf(path fieldpath.Path, from any) string {
	pointer := ""

	for _, element := range path {
		list, _ := from.([]any)
		name := cmp.Or(fieldName(element), strconv.Itoa(itemIndex(list, element)))

		pointer = objectdiff.Child(pointer, name)
		from, _ = partAt(from, element)
	}

	return pointer
}
