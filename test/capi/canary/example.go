package canary

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// example returns a small value of a schema: the required fields, each with its default or the least value. It need
// not be valid: patterns and rules in CEL are ignored, and lists have at most one item.
func example(s *apiextensionsv1.JSONSchemaProps) any {
	for _, known := range append([]apiextensionsv1.JSON{defaultOf(s)}, s.Enum...) {
		var value any
		if json.Unmarshal(known.Raw, &value) == nil {
			return value
		}
	}

	switch s.Type {
	case "object":
		return exampleObject(s)
	case "array":
		return exampleList(s)
	case "string":
		return exampleText(s)
	case "boolean":
		return false
	}

	if s.Minimum != nil {
		return *s.Minimum
	}

	return int64(1)
}

func defaultOf(s *apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSON {
	if s.Default == nil {
		return apiextensionsv1.JSON{}
	}

	return *s.Default
}

func exampleObject(s *apiextensionsv1.JSONSchemaProps) map[string]any {
	object := map[string]any{}

	for _, name := range append(slices.Clone(s.Required), slices.Sorted(maps.Keys(s.Properties))...) {
		property, known := s.Properties[name]
		if known && (slices.Contains(s.Required, name) || s.MinProperties != nil && int64(len(object)) < *s.MinProperties) {
			object[name] = example(&property)
		}
	}

	return object
}

func exampleList(s *apiextensionsv1.JSONSchemaProps) []any {
	list := []any{}

	// More than one item could be any number, and again in each of them.
	if s.MinItems != nil && *s.MinItems > 0 && s.Items != nil && s.Items.Schema != nil {
		list = append(list, example(s.Items.Schema))
	}

	return list
}

// formats are values of the formats that the API server validates.
var formats = map[string]string{
	"date-time": "2000-01-01T00:00:00Z", "date": "2000-01-01", "duration": "1m",
	"ipv4": "192.0.2.1", "ipv6": "2001:db8::1",
	"cidr": "192.0.2.0/24", "uri": "https://example.com", "uuid": "00000000-0000-4000-8000-000000000000", "byte": "",
}

func exampleText(s *apiextensionsv1.JSONSchemaProps) string {
	if text, known := formats[s.Format]; known {
		return text
	}

	length := int64(1)
	if s.MinLength != nil {
		length = max(length, *s.MinLength)
	}

	return strings.Repeat("x", int(min(length, 1000)))
}
