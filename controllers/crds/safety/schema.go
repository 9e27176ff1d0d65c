package safety

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// props is short for the type of a schema.
type props = apiextensionsv1.JSONSchemaProps

const messageUnknownFieldsPruned = "fields that the schema does not define are no longer kept"

// schemaComparer compares two schemas and collects the findings.
type schemaComparer struct {
	location // of the schemas' root
	findings []Finding
}

// compareSchemas returns what in the new schema can break objects or clients of the old one.
func compareSchemas(at location, old, new *apiextensionsv1.CustomResourceValidation) []Finding {
	if equality.Semantic.DeepEqual(old, new) {
		return nil
	}

	c := schemaComparer{location: at}
	c.compare("", rootSchema(old), rootSchema(new))

	return c.findings
}

// rootSchema returns the schema of a whole object. A version without a schema accepts everything.
func rootSchema(v *apiextensionsv1.CustomResourceValidation) *props {
	if v == nil || v.OpenAPIV3Schema == nil {
		everything := true
		return &props{Type: "object", XPreserveUnknownFields: &everything}
	}

	return v.OpenAPIV3Schema
}

// add appends a finding about a field.
func (c *schemaComparer) add(path string, rule Rule, format string, args ...any) {
	at := location{crd: c.crd, version: c.version, path: path}
	c.findings = append(c.findings, at.finding(rule, format, args...))
}

// compare compares the schemas of one field and all its children.
func (c *schemaComparer) compare(path string, old, new *props) {
	if typeName(old) != typeName(new) {
		c.add(path, RuleTypeChanged, "the type changes from %s to %s", typeName(old), typeName(new))
		return
	}

	c.compareKeywords(path, old, new)
	c.compareRequired(path, old, new)
	c.compareProperties(path, old, new)
	c.compareItems(path, old, new)
	c.compareMapValues(path, old, new)
}

// compareRequired finds fields that become required. The API server sets those that have a default.
func (c *schemaComparer) compareRequired(path string, old, new *props) {
	for _, name := range new.Required {
		if slices.Contains(old.Required, name) || new.Properties[name].Default != nil {
			continue
		}

		c.add(joinPath(path, name), RuleFieldRequired, "the field becomes required")
	}
}

// compareProperties compares the fields of an object.
func (c *schemaComparer) compareProperties(path string, old, new *props) {
	for name, before := range old.Properties {
		after, kept := new.Properties[name]

		switch {
		case kept:
			c.compare(joinPath(path, name), &before, &after)
		case !preservesUnknownFields(new) && new.AdditionalProperties == nil:
			c.add(joinPath(path, name), RuleFieldRemoved, "the field is removed")
		}
	}

	if !preservesUnknownFields(old) || old.XEmbeddedResource {
		return
	}

	for name, after := range new.Properties {
		if _, known := old.Properties[name]; !known {
			c.add(joinPath(path, name), RuleFieldSchemaAdded,
				"the field accepted any value and is now of type %s", typeName(&after))
		}
	}
}

// compareItems compares the items of a list.
func (c *schemaComparer) compareItems(path string, old, new *props) {
	before := itemSchema(old)
	after := itemSchema(new)

	if before != nil && after != nil {
		c.compare(path+anyItem, before, after)
	}
}

// compareMapValues compares the values of a map.
func (c *schemaComparer) compareMapValues(path string, old, new *props) {
	before := valueSchema(old)
	after := valueSchema(new)

	switch {
	case before == nil:
	case after != nil:
		c.compare(path+anyItem, before, after)
	case new.AdditionalProperties == nil && !preservesUnknownFields(new):
		c.add(path+anyItem, RuleFieldRemoved, "arbitrary keys are no longer allowed")
	}
}

// itemSchema returns the schema of a list's items, or nil if there is none.
func itemSchema(s *props) *props {
	if s.Items == nil {
		return nil
	}

	return s.Items.Schema
}

// valueSchema returns the schema of a map's values, or nil if there is none.
func valueSchema(s *props) *props {
	if s.AdditionalProperties == nil {
		return nil
	}

	return s.AdditionalProperties.Schema
}

// typeName returns the type of a schema for messages and comparisons.
func typeName(s *props) string {
	switch {
	case s.XIntOrString:
		return "int-or-string"
	case s.Type == "":
		return "any"
	default:
		return s.Type
	}
}

// preservesUnknownFields reports whether the API server keeps fields that the schema does not
// define.
func preservesUnknownFields(s *props) bool {
	return s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields
}
