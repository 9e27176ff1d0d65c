package lint

import (
	"fmt"

	"github.com/capstan-project/capstan/chartgen/bundle"
)

// mapOfStrings is the type of labels and annotations.
const mapOfStrings = "map of strings"

// field is a field of a contract.
type field struct {
	// Path is the path in the object, joined by ".".
	Path string
	// Type is the type in the CRD's schema, or "map of strings".
	Type string
	// Optional reports whether the field may be missing. It must not have another type.
	Optional bool
}

// Problem describes what is wrong with a field. It returns "" if the field is as required, or
// unknown.
func (v *crdVersion) Problem(f field) string {
	schema, known := v.Property(f.Path)

	switch {
	case !known, schema == nil && f.Optional:
		return ""
	case schema == nil:
		return fmt.Sprintf("%s (%s)", f.Path, f.Type)
	case f.Type == mapOfStrings:
		return mapProblem(f.Path, schema)
	case bundle.NestedString(schema, "type") == f.Type, acceptsAny(schema):
		return ""
	}

	return fmt.Sprintf("%s of type %s (it has type %q)", f.Path, f.Type, bundle.NestedString(schema, "type"))
}

// acceptsAny reports whether a field may have values of several types.
func acceptsAny(schema map[string]any) bool {
	return schema["x-kubernetes-int-or-string"] == true || allowsUnknown(schema) && schema["type"] == nil
}

// mapProblem describes why a map cannot hold strings. Without additionalProperties, the API server
// accepts every object and drops its content.
func mapProblem(path string, schema map[string]any) string {
	items := bundle.NestedMap(schema, "additionalProperties")

	switch {
	case acceptsAny(schema):
		return ""
	case bundle.NestedString(schema, "type") != "object":
		return fmt.Sprintf("%s as a map of strings (it has type %q)", path, bundle.NestedString(schema, "type"))
	case allowsUnknown(schema), schema["additionalProperties"] == true, bundle.NestedString(items, "type") == "string":
		return ""
	case items == nil:
		return path + " as a map of strings (it has no additionalProperties, so the API server drops its content)"
	}

	return fmt.Sprintf("%s as a map of strings (its values have type %q)", path, bundle.NestedString(items, "type"))
}

// bothContracts requires the same fields in v1beta1 and v1beta2.
func bothContracts(fields ...field) map[string][]field {
	return map[string][]field{"v1beta1": fields, "v1beta2": fields}
}

// fieldsOf returns fields of one type with a common prefix.
func fieldsOf(typ, prefix string, names ...string) []field {
	fields := make([]field, 0, len(names))
	for _, name := range names {
		fields = append(fields, field{Path: prefix + name, Type: typ})
	}

	return fields
}

// optional returns fields that may be missing.
func optional(fields ...[]field) []field {
	var all []field

	for _, some := range fields {
		for _, f := range some {
			f.Optional = true
			all = append(all, f)
		}
	}

	return all
}

// failureFields are the fields for errors that cannot be recovered from, in all resources.
var failureFields = fieldsOf("string", "status.", "failureReason", "failureMessage")

// optionalFields returns the requirement for the types of optional fields, the same in all contracts. Those that
// Cluster API's core does not read, or ignores if they have another type, are not among them.
func optionalFields(fields ...[]field) requiredFields {
	all := append(optional(fields...), optional(failureFields)...)

	return requiredFields{
		Name: "optional-fields",
		Text: "Optional fields that core reads have the types of the contract.",
		Why:  "Cluster API cannot read the object.",
		Fields: map[string][]field{
			"v1beta1": all,
			"v1beta2": all,
		},
	}
}
