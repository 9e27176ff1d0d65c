package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const apiHead = notice + `# The API

The API group is ~operator.cluster.x-k8s.io/v1alpha2~. All kinds are namespaced and have the same spec and status.
~kubectl explain infrastructureproviders.spec~ shows the same descriptions. ~kubectl get capstan -A~ lists the resources
of all kinds, and ~kubectl get cluster-api -A~ lists Cluster API's own objects, too.

| kind | resource | short name | description |
|---|---|---|---|
`

// kubernetesTypes are the fields with a type of Kubernetes, which its documentation describes.
var kubernetesTypes = map[string]string{
	"affinity":                    "Affinity",
	"tolerations[]":               "Toleration",
	"topologySpreadConstraints[]": "TopologySpreadConstraint",
	"imagePullSecrets[]":          "LocalObjectReference",
	"securityContext":             "PodSecurityContext",
	"env[]":                       "EnvVar",
	"resources":                   "ResourceRequirements",
	"selector":                    "LabelSelector",
	"conditions[]":                "Condition",
}

// apiPage returns the page with all kinds, and the spec and status that they share.
func apiPage(folder string) ([]byte, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}

	var out bytes.Buffer
	out.WriteString(strings.ReplaceAll(apiHead, "~", "`"))

	var schema *apiextensionsv1.JSONSchemaProps

	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}

		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(data, &crd); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}

		schema = crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		names := crd.Spec.Names
		short := strings.Join(names.ShortNames, ", ")
		fmt.Fprintf(&out, "| `%s` | `%s` | `%s` | %s |\n", names.Kind, names.Plural, short, cell(schema.Description))
	}

	if schema == nil {
		return nil, fmt.Errorf("no CRDs in %s", folder)
	}

	for _, part := range []string{"spec", "status"} {
		property := schema.Properties[part]
		fmt.Fprintf(&out, "\n## %s\n\n| field | type | description |\n|---|---|---|\n", part)

		t := table{out: &out, seen: map[string]*apiextensionsv1.JSONSchemaProps{}}
		t.fields(part, &property)
	}

	return out.Bytes(), nil
}

// table writes a row for each field.
type table struct {
	out *bytes.Buffer

	// seen holds the objects that already have rows, by path.
	seen map[string]*apiextensionsv1.JSONSchemaProps
}

// fields writes the rows of an object's fields.
func (t table) fields(path string, schema *apiextensionsv1.JSONSchemaProps) {
	names := slices.Collect(maps.Keys(schema.Properties))
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(sortKey(a), sortKey(b)) })

	for _, name := range names {
		property := schema.Properties[name]
		t.row(path+"."+name, name, &property, slices.Contains(schema.Required, name))
	}
}

// sortKey sorts fields by name, but additionalDeployments last, because it refers to other fields.
func sortKey(name string) string {
	if name == "additionalDeployments" {
		return "~"
	}

	return name
}

// row writes the row of a field, and the rows of the fields in it.
func (t table) row(path, name string, schema *apiextensionsv1.JSONSchemaProps, required bool) {
	element, suffix := elementOf(schema)

	text := cell(schema.Description)
	if rules := rules(schema, required); rules != "" {
		text += " *" + rules + "*"
	}

	kubernetesType := kubernetesTypes[name+suffix]
	same := t.sameFields(element)

	switch {
	case kubernetesType != "":
		text += fmt.Sprintf(" See Kubernetes' `%s`.", kubernetesType)
	case same != "":
		text += fmt.Sprintf(" Its fields are those of `%s`.", same)
	}

	fmt.Fprintf(t.out, "| `%s` | %s | %s |\n", path, typeOf(schema), text)

	if kubernetesType == "" && same == "" && len(element.Properties) > 0 {
		t.seen[path+suffix] = element
		t.fields(path+suffix, element)
	}
}

// sameFields returns the path of an object with the same fields that already has rows, or "".
func (t table) sameFields(schema *apiextensionsv1.JSONSchemaProps) string {
	if len(schema.Properties) < 3 {
		return ""
	}

	for _, path := range slices.Sorted(maps.Keys(t.seen)) {
		if reflect.DeepEqual(t.seen[path].Properties, schema.Properties) {
			return path
		}
	}

	return ""
}

// elementOf returns the schema of a list's items or a map's values, and the suffix that represents
// them in a path. For other fields it returns the schema itself.
func elementOf(schema *apiextensionsv1.JSONSchemaProps) (*apiextensionsv1.JSONSchemaProps, string) {
	switch {
	case schema.Items != nil && schema.Items.Schema != nil:
		return schema.Items.Schema, "[]"
	case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
		return schema.AdditionalProperties.Schema, ".*"
	}

	return schema, ""
}

func typeOf(schema *apiextensionsv1.JSONSchemaProps) string {
	element, suffix := elementOf(schema)

	switch {
	case suffix == "[]":
		return "list of " + typeOf(element)
	case suffix == ".*":
		return "map of " + typeOf(element)
	case schema.Format == "date-time":
		return "time"
	case schema.XIntOrString:
		return "integer or string"
	}

	return schema.Type
}

// rules returns the validation rules in words.
func rules(schema *apiextensionsv1.JSONSchemaProps, required bool) string {
	var parts []string
	if required {
		parts = append(parts, "Required.")
	}

	if len(schema.Enum) > 0 {
		values := make([]string, 0, len(schema.Enum))
		for _, v := range schema.Enum {
			values = append(values, strings.Trim(string(v.Raw), `"`))
		}

		parts = append(parts, "One of "+strings.Join(values, ", ")+".")
	}

	if schema.Minimum != nil {
		parts = append(parts, fmt.Sprintf("At least %v.", *schema.Minimum))
	}

	if schema.Maximum != nil {
		parts = append(parts, fmt.Sprintf("At most %v.", *schema.Maximum))
	}

	for _, rule := range schema.XValidations {
		parts = append(parts, sentence(rule.Message))
	}

	return strings.Join(parts, " ")
}

// sentence returns a message as a sentence. If it starts with the name of a field, it keeps its case.
func sentence(message string) string {
	word, _, _ := strings.Cut(message, " ")
	if ordinary := []string{"must", "set", "the"}; slices.Contains(ordinary, word) {
		message = strings.ToUpper(message[:1]) + message[1:]
	}

	return strings.TrimSuffix(message, ".") + "."
}

// cell escapes text for a cell of a table.
func cell(text string) string {
	return strings.NewReplacer("\n", " ", "|", `\|`, "<", "&lt;").Replace(text)
}
