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

` + "`operator.cluster.x-k8s.io/v1alpha2`" + `. All kinds are namespaced and have the same spec and status. ` + "`kubectl explain infrastructureproviders.spec`" + `
tells the same, and ` + "`kubectl get capstan -A`" + ` lists the resources of all kinds.

| kind | resource | short | what it does |
|---|---|---|---|
`

// kubernetesOwn are fields whose types are Kubernetes' own: its documentation tells what is in
// them.
var kubernetesOwn = map[string]string{
	"affinity":      "Affinity",
	"tolerations[]": "Toleration",
	"env[]":         "EnvVar",
	"resources":     "ResourceRequirements",
	"selector":      "LabelSelector",
	"conditions[]":  "Condition",
}

// apiPage describes the kinds, and once the spec and status that they share.
func apiPage(folder string) ([]byte, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}

	var out bytes.Buffer
	out.WriteString(apiHead)

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
		fmt.Fprintf(
			&out,
			"| `%s` | `%s` | `%s` | %s |\n",
			names.Kind,
			names.Plural,
			strings.Join(names.ShortNames, ", "),
			cell(schema.Description),
		)
	}

	if schema == nil {
		return nil, fmt.Errorf("no CRDs in %s", folder)
	}

	for _, part := range []string{"spec", "status"} {
		property := schema.Properties[part]
		fmt.Fprintf(&out, "\n## %s\n\n| field | type | what it is |\n|---|---|---|\n", part)
		t := table{out: &out, seen: map[string]*apiextensionsv1.JSONSchemaProps{}}
		t.fields(part, &property)
	}

	return out.Bytes(), nil
}

// table writes a row for each field.
type table struct {
	out *bytes.Buffer
	// seen are objects that have their rows, by path.
	seen map[string]*apiextensionsv1.JSONSchemaProps
}

func (t table) fields(path string, schema *apiextensionsv1.JSONSchemaProps) {
	names := slices.Collect(maps.Keys(schema.Properties))
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(last(a), last(b)) })

	for _, name := range names {
		property := schema.Properties[name]
		t.row(path+"."+name, name, &property, slices.Contains(schema.Required, name))
	}
}

// last puts the field behind all others that repeats what they say.
func last(name string) string {
	if name == "additionalDeployments" {
		return "~"
	}

	return name
}

// row writes a field, and the fields below it.
func (t table) row(path, name string, schema *apiextensionsv1.JSONSchemaProps, required bool) {
	below, suffix := content(schema)

	text := cell(schema.Description)
	if rules := rules(schema, required); rules != "" {
		text += " *" + rules + "*"
	}

	known := kubernetesOwn[name+suffix]

	as := t.as(below)
	switch {
	case known != "":
		text += fmt.Sprintf(" Kubernetes' own `%s`.", known)
	case as != "":
		text += fmt.Sprintf(" Its fields are those of `%s`.", as)
	}

	fmt.Fprintf(t.out, "| `%s` | %s | %s |\n", path, typeOf(schema), text)

	if known == "" && as == "" && below != nil && len(below.Properties) > 0 {
		t.seen[path+suffix] = below
		t.fields(path+suffix, below)
	}
}

// as is the path of an object with the same fields; empty when there is none yet.
func (t table) as(schema *apiextensionsv1.JSONSchemaProps) string {
	if schema == nil || len(schema.Properties) < 3 {
		return ""
	}

	for _, path := range slices.Sorted(maps.Keys(t.seen)) {
		if reflect.DeepEqual(t.seen[path].Properties, schema.Properties) {
			return path
		}
	}

	return ""
}

// content is the object that a field holds, or its items or values do, and what stands for that in
// a path.
func content(schema *apiextensionsv1.JSONSchemaProps) (*apiextensionsv1.JSONSchemaProps, string) {
	switch {
	case schema.Items != nil && schema.Items.Schema != nil:
		return schema.Items.Schema, "[]"
	case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
		return schema.AdditionalProperties.Schema, ".*"
	}

	return schema, ""
}

func typeOf(schema *apiextensionsv1.JSONSchemaProps) string {
	below, suffix := content(schema)
	switch {
	case suffix == "[]":
		return "list of " + typeOf(below)
	case suffix == ".*":
		return "map to " + typeOf(below)
	case schema.Format == "date-time":
		return "time"
	case schema.XIntOrString:
		return "integer or string"
	}

	return schema.Type
}

// rules are those that a person can read; what CEL rules say is in the descriptions.
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
		parts = append(parts, strings.ToUpper(rule.Message[:1])+strings.TrimSuffix(rule.Message[1:], ".")+".")
	}

	return strings.Join(parts, " ")
}

// cell is text for a cell of a table.
func cell(text string) string {
	return strings.NewReplacer("\n", " ", "|", `\|`, "<", "&lt;").Replace(text)
}
