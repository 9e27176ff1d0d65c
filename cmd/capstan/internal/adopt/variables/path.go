package variables

import (
	"slices"
	"strings"
)

// path is that of a field: keys of maps, and indexes of lists.
type path []any

func (p path) to(step any) path { return append(slices.Clone(p), step) }

// in returns the field in a value; nil if there is none.
func (p path) in(value any) any {
	for _, step := range p {
		switch step := step.(type) {
		case string:
			fields, _ := value.(map[string]any)
			value = fields[step]
		case int:
			items, _ := value.([]any)
			if step >= len(items) {
				return nil
			}

			value = items[step]
		}
	}

	return value
}

// String returns the path for messages, without indexes.
func (p path) String() string {
	var keys []string

	for _, step := range p {
		if key, isKey := step.(string); isKey {
			keys = append(keys, key)
		}
	}

	return strings.Join(keys, ".")
}
