package safety

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Props is a schema, shortly.
type props = apiextensionsv1.JSONSchemaProps

// anyItem stands in a path for any item of a list and any key of a map.
const anyItem = "[*]"

// walker compares two schemas and collects what it finds.
type walker struct {
	crd, version string
	findings     []*Finding
}

// compareSchemas finds what in new can break objects or clients of old.
func compareSchemas(crd, version string, old, new *apiextensionsv1.CustomResourceValidation) []*Finding {
	w := walker{crd: crd, version: version}
	w.compare("", root(old), root(new))

	return w.findings
}

// root of a schema. A version without one takes everything.
func root(v *apiextensionsv1.CustomResourceValidation) *props {
	if v == nil || v.OpenAPIV3Schema == nil {
		everything := true
		return &props{Type: "object", XPreserveUnknownFields: &everything}
	}

	return v.OpenAPIV3Schema
}

// add notes a finding with its rule's level and remedy.
func (w *walker) add(rule Rule, path, message string, args ...any) {
	w.findings = append(w.findings, newFinding(rule, w.crd, w.version, path, message, args...))
}

func newFinding(rule Rule, crd, version, path, message string, args ...any) *Finding {
	t := ruleTraits[rule]
	if t.level == "" {
		t.level = Warning
	}

	return &Finding{
		CRD:     crd,
		Version: version,
		Path:    path,
		Rule:    rule,
		Level:   t.level,
		Message: fmt.Sprintf(message, args...),
		Remedy:  t.remedy,
	}
}

func (w *walker) compare(path string, old, new *props) {
	if kind(old) != kind(new) {
		w.add(RuleType, path, "the type changes from %s to %s", kind(old), kind(new))
		return
	}

	w.attributes(path, old, new)
	w.required(path, old, new)
	w.children(path, old, new)

	if old.Items != nil && new.Items != nil && old.Items.Schema != nil && new.Items.Schema != nil {
		w.compare(path+anyItem, old.Items.Schema, new.Items.Schema)
	}

	if old.AdditionalProperties == nil || old.AdditionalProperties.Schema == nil {
		return
	}

	switch {
	case new.AdditionalProperties != nil && new.AdditionalProperties.Schema != nil:
		w.compare(path+anyItem, old.AdditionalProperties.Schema, new.AdditionalProperties.Schema)
	case new.AdditionalProperties == nil && !preserves(new):
		w.add(RuleFieldRemoved, path+anyItem, "keys of one's own are removed")
	}
}

// children compares the properties.
func (w *walker) children(path string, old, new *props) {
	for name := range old.Properties {
		before, after := old.Properties[name], new.Properties[name]
		if _, kept := new.Properties[name]; kept {
			w.compare(child(path, name), &before, &after)
			continue
		}

		if !preserves(new) && new.AdditionalProperties == nil {
			w.add(RuleFieldRemoved, child(path, name), "the field is removed")
		}
	}

	if !preserves(old) || old.XEmbeddedResource {
		return
	}

	for name, after := range new.Properties {
		if _, known := old.Properties[name]; !known {
			w.add(RuleFieldDescribed, child(path, name), "the field took anything and is now of type %s", kind(&after))
		}
	}
}

// required finds fields that objects must have and did not need. The API server fills in those with
// a default.
func (w *walker) required(path string, old, new *props) {
	for _, name := range new.Required {
		if field, known := new.Properties[name]; !slices.Contains(old.Required, name) && (!known || field.Default == nil) {
			w.add(RuleRequired, child(path, name), "the field becomes required")
		}
	}
}

// kind is a schema's type, or what stands in its place.
func kind(s *props) string {
	switch {
	case s.XIntOrString:
		return "int-or-string"
	case s.Type == "":
		return "any"
	}

	return s.Type
}

// preserves reports whether the API server keeps fields that the schema does not have.
func preserves(s *props) bool { return s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields }

func child(path, name string) string {
	if path == "" {
		return name
	}

	return path + "." + name
}

// same reports whether two schemas are equal, byte for byte of their meaning.
func same(a, b *apiextensionsv1.CustomResourceValidation) bool {
	return equality.Semantic.DeepEqual(a, b)
}
