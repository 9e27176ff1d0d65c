package trial

import (
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

func TestSchemaPath(t *testing.T) {
	g := NewWithT(t)
	schema := &apiextensionsv1.JSONSchemaProps{}
	g.Expect(yaml.UnmarshalStrict([]byte(`
type: object
properties:
  list: {type: array, items: {type: object, properties: {name: {type: string}}}}
  map: {type: object, additionalProperties: {type: object, properties: {name: {type: string}}}}
  any: {type: object, x-kubernetes-preserve-unknown-fields: true}
`), schema)).To(Succeed())

	compiled, err := compileSchema(schema)
	g.Expect(err).NotTo(HaveOccurred())

	for path, want := range map[string]string{
		"":              "",
		"list[2].name":  "list[*].name",
		"list[2].other": "list[*]",
		"map.key.name":  "map[*].name",
		"map[key].name": "map[*].name",
		"any.thing":     "any",
		"unknown":       "",
	} {
		g.Expect(schemaPath(path, compiled.structural)).To(Equal(want), path)
	}
}

func TestReason(t *testing.T) {
	path := field.NewPath("spec", "name")

	for want, err := range map[string]*field.Error{
		"the field is required":        field.Required(path, "hunter2 is missing"),
		"the value is no longer valid": field.Invalid(path, "hunter2", `must be of type ipv4: "hunter2"`),
		"the value is no longer valid: should be at least 9 chars long": field.Invalid(
			path, "hunter2", "spec.name in body should be at least 9 chars long"),
		"the value is no longer valid: should be less than or equal to 5": field.Invalid(
			path, 7, "spec.name in body should be less than or equal to 5"),
	} {
		NewWithT(t).Expect(reason(err)).To(Equal(want))
	}
}

func TestErrorPath(t *testing.T) {
	g := NewWithT(t)

	g.Expect(errorPath(field.Required(field.NewPath("spec", "name"), ""))).To(Equal("spec.name"))
	g.Expect(errorPath(field.Invalid(nil, "", `"spec.one" must validate one and only one schema`))).To(Equal("spec.one"))
	g.Expect(errorPath(field.Invalid(nil, "", "something else"))).To(BeEmpty())
}
