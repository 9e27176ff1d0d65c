package chartgen

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/expr"
)

// schemaNode is the part of JSON Schema (draft 7) that values.schema.json uses. It never refers to another document:
// Helm would fetch it.
type schemaNode struct {
	Schema               string                 `json:"$schema,omitempty"`
	Title                string                 `json:"title,omitempty"`
	Description          string                 `json:"description,omitempty"`
	Type                 any                    `json:"type,omitempty"`
	Properties           map[string]*schemaNode `json:"properties,omitempty"`
	Required             []string               `json:"required,omitempty"`
	AdditionalProperties *bool                  `json:"additionalProperties,omitempty"`
}

// valuesSchema is values.schema.json: required variables are required here, so that Helm itself names all that are missing.
func valuesSchema(variables []expr.Variable) ([]byte, error) {
	no := false
	node := &schemaNode{Type: "object", Description: "The provider's variables, by name.", AdditionalProperties: &no, Properties: map[string]*schemaNode{}}
	for _, v := range variables {
		property := &schemaNode{Type: []string{"string", "number", "boolean", "null"}, Description: describe(v)}
		if v.Required {
			property.Type = []string{"string", "number", "boolean"}
			node.Required = append(node.Required, v.Name)
		}
		node.Properties[v.Name] = property
	}
	root := &schemaNode{
		Schema: "http://json-schema.org/draft-07/schema#", Type: "object", AdditionalProperties: &no,
		Properties: map[string]*schemaNode{"variables": node, "global": {Type: "object", Description: "Helm's values for all charts of a release."}},
	}
	data, err := json.MarshalIndent(root, "", "  ")
	return append(data, '\n'), err
}

// RequiredVariables reads from a chart's schema the names of the variables that have no default, sorted, and the names of all.
func RequiredVariables(c *chart.Chart) (required, all []string, err error) {
	var root schemaNode
	if err := json.Unmarshal(c.File(chart.SchemaFile), &root); err != nil {
		return nil, nil, fmt.Errorf("chart %s: %s: %w", c.Metadata.Name, chart.SchemaFile, err)
	}
	node := root.Properties["variables"]
	if node == nil {
		return nil, nil, nil
	}
	return node.Required, slices.Sorted(maps.Keys(node.Properties)), nil
}

// valuesFile is values.yaml. Defaults stay in the templates, where each use of a variable may have its own; here they
// are only told.
func valuesFile(b *bundle.Bundle, variables []expr.Variable) []byte {
	var out strings.Builder
	fmt.Fprintf(&out, "# Values of %s %s.\n\n# The provider's variables, by name. A variable that is not set, or empty, has its default.\nvariables: {}\n", b.Provider.Label, b.Version)
	for _, v := range variables {
		fmt.Fprintf(&out, "  # %s\n  # %s: %s\n", describe(v), v.Name, example(v))
	}
	return []byte(out.String())
}

// describe says in one line what a person must know of a variable.
func describe(v expr.Variable) string {
	if v.Required {
		return "Required."
	}
	if len(v.Defaults) == 0 {
		return "Optional; empty by default."
	}
	quoted := make([]string, len(v.Defaults))
	for i, d := range v.Defaults {
		quoted[i] = fmt.Sprintf("%q", d)
	}
	return "Optional; default " + strings.Join(quoted, " or ") + "."
}

func example(v expr.Variable) string {
	if len(v.Defaults) == 0 {
		return `""`
	}
	return fmt.Sprintf("%q", v.Defaults[0])
}
