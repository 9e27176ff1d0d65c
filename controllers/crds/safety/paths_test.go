package safety

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

func TestSplitPath(t *testing.T) {
	for path, steps := range map[string][]string{
		"":                     {},
		"spec":                 {"spec"},
		"spec.hosts[2].name":   {"spec", "hosts", "[2]", "name"},
		"spec.hosts[*][*].key": {"spec", "hosts", "[*]", "[*]", "key"},
	} {
		NewWithT(t).Expect(splitPath(path)).To(Equal(steps), path)
	}
}

func TestParentPath(t *testing.T) {
	g := NewWithT(t)

	var parents []string

	path, found := "spec.hosts[*].name", true
	for found {
		path, found = parentPath(path)
		if found {
			parents = append(parents, path)
		}
	}

	g.Expect(parents).To(Equal([]string{"spec.hosts[*]", "spec.hosts", "spec", ""}))
}

func TestSchemaPath(t *testing.T) {
	schema := &props{}
	NewWithT(t).Expect(yaml.UnmarshalStrict([]byte(`
properties:
  list: {items: {properties: {name: {type: string}}}}
  map: {additionalProperties: {properties: {name: {type: string}}}}
  any: {x-kubernetes-preserve-unknown-fields: true}
`), schema)).To(Succeed())

	for path, want := range map[string]string{
		"list[2].name":  "list[*].name",
		"list[2].other": "list[*]",
		"map.key.name":  "map[*].name",
		"map[key].name": "map[*].name",
		"any.thing":     "any",
		"unknown":       "",
	} {
		NewWithT(t).Expect(schemaPath(path, schema)).To(Equal(want), path)
	}

	for path, want := range map[string]bool{
		"list[*].name":  true,
		"list[*].other": false,
		"map[*].name":   true,
		"any.thing":     true,
		"unknown":       false,
	} {
		NewWithT(t).Expect(defines(schema, path)).To(Equal(want), path)
	}
}

func TestErrorPath(t *testing.T) {
	g := NewWithT(t)

	g.Expect(errorPath(field.Required(field.NewPath("spec", "name"), ""))).To(Equal("spec.name"))
	g.Expect(errorPath(field.Invalid(nil, "", `"spec.one" must validate one and only one schema`))).To(Equal("spec.one"))
	g.Expect(errorPath(field.Invalid(nil, "", "something else"))).To(BeEmpty())
}

func TestInStatus(t *testing.T) {
	g := NewWithT(t)

	g.Expect(inStatus("status")).To(BeTrue())
	g.Expect(inStatus("status.phase")).To(BeTrue())
	g.Expect(inStatus("statusText")).To(BeFalse())
	g.Expect(inStatus("spec.status")).To(BeFalse())
}
