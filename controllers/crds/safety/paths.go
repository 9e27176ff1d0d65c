package safety

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// There are two kinds of paths. That of an object's field, as the API server writes it, has indexes:
// "spec.hosts[2].address". That of a field in a schema has anyItem instead:
// "spec.hosts[*].address".

// anyItem is any item of a list and any key of a map in the path of a schema's field.
const anyItem = "[*]"

// joinPath returns the path of a field's child.
func joinPath(path, name string) string {
	if path == "" {
		return name
	}

	return path + "." + name
}

// splitPath returns the steps of a path: "hosts[2].name" is hosts, [2], name.
func splitPath(path string) []string {
	return strings.FieldsFunc(strings.ReplaceAll(path, "[", ".["), func(r rune) bool { return r == '.' })
}

// parentPath returns the path of the schema that contains a schema's field; false if the path is the
// root.
func parentPath(path string) (string, bool) {
	if path == "" {
		return "", false
	}

	if rest, found := strings.CutSuffix(path, anyItem); found {
		return rest, true
	}

	return path[:max(0, strings.LastIndex(path, "."))], true
}

// schemaPath converts the path of an object's field into that of the schema, as far as the schema
// defines it.
func schemaPath(path string, s *props) string {
	var at string

	for _, step := range splitPath(path) {
		property, known := s.Properties[step]

		switch {
		case known:
			at = joinPath(at, step)
			s = &property
		case itemSchema(s) != nil && strings.HasPrefix(step, "["):
			at += anyItem
			s = itemSchema(s)
		case valueSchema(s) != nil:
			at += anyItem
			s = valueSchema(s)
		default:
			return at
		}
	}

	return at
}

// defines reports whether a schema defines or preserves the field at a schema's path.
func defines(s *props, path string) bool {
	for _, step := range splitPath(path) {
		property, known := s.Properties[step]

		switch {
		case known:
			s = &property
		case step == anyItem && itemSchema(s) != nil:
			s = itemSchema(s)
		case step == anyItem && valueSchema(s) != nil:
			s = valueSchema(s)
		default:
			return preservesUnknownFields(s)
		}
	}

	return true
}

// errorPath returns the path of the field that an error is about; empty if it is about the object.
func errorPath(err *field.Error) string {
	if err.Field != (*field.Path)(nil).String() {
		return err.Field
	}

	// Errors about oneOf and the like have the path only in their text, in quotes.
	prefix, _ := strconv.QuotedPrefix(err.Detail)
	path, _ := strconv.Unquote(prefix)

	return strings.Trim(path, ".")
}

// inStatus reports whether a path is that of the status or a part of it.
func inStatus(path string) bool { return path == "status" || strings.HasPrefix(path, "status.") }
