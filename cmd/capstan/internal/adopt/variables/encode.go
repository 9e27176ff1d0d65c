package variables

import (
	"encoding/json"
	"reflect"
	"strings"
)

// encode returns the text of a variable that results in the value that fields show. The text is part of YAML, so
// it may need quotes or escapes there, depending on what surrounds it. It reports whether there is such a text.
func (t *Template) encode(index int, value string, sites []site) (string, bool) {
	for _, text := range forms(value) {
		values := t.marks()
		values[t.names[index]] = text

		rendered, err := t.render(values)
		if err != nil || len(rendered) != len(t.marked) {
			continue
		}

		fits := true

		for _, s := range sites {
			fits = fits && s.isRendered(index, value, s.path.in(rendered[s.object].Object))
		}

		if fits {
			return text, true
		}
	}

	return "", false
}

// forms returns how a value can be written in YAML: as it is, in quotes, and in the quotes of the template.
func forms(value string) []string {
	quoted, err := json.Marshal(value)
	if err != nil {
		return []string{value}
	}

	inDouble := strings.TrimSuffix(strings.TrimPrefix(string(quoted), `"`), `"`)
	inSingle := strings.ReplaceAll(value, "'", "''")

	return []string{value, string(quoted), inDouble, inSingle}
}

// isRendered reports whether a field, rendered with a value of one variable and marks for the others, is the
// field in the cluster.
func (s site) isRendered(index int, value string, rendered any) bool {
	if _, whole := wholeMark(s.marked); whole {
		return reflect.DeepEqual(s.live, rendered) || textOf(s.live) == "" && textOf(rendered) == ""
	}

	return rendered == strings.ReplaceAll(s.marked, mark(index), value)
}
