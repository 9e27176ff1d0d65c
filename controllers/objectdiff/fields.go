package objectdiff

import (
	"maps"
	"reflect"
	"strconv"
	"strings"
)

// pointerEscapes replaces what has a meaning in a JSON pointer.
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// Child returns the JSON pointer of a field of an object.
func Child(pointer, field string) string { return pointer + "/" + pointerEscapes.Replace(field) }

// Fields returns the JSON pointers of the innermost values that differ between two JSON values at a pointer, in any
// order. Lists of different lengths differ as a whole.
func Fields(pointer string, before, after any) (found []string) {
	switch before := before.(type) {
	case map[string]any:
		if after, ok := after.(map[string]any); ok {
			keys := maps.Clone(before)
			maps.Copy(keys, after)

			for key := range keys {
				found = append(found, Fields(Child(pointer, key), before[key], after[key])...)
			}

			return found
		}
	case []any:
		if after, ok := after.([]any); ok && len(after) == len(before) {
			for i := range before {
				found = append(found, Fields(Child(pointer, strconv.Itoa(i)), before[i], after[i])...)
			}

			return found
		}
	}

	if !reflect.DeepEqual(before, after) {
		found = append(found, pointer)
	}

	return found
}
