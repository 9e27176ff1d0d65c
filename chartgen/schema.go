package chartgen

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/chartgen/chart"
)

// schemaNode is the part of JSON Schema (draft 7) that values.schema.json uses. It never refers to
// another document: Helm would fetch it.
type schemaNode struct {
	Schema      string                 `json:"$schema,omitempty"`
	Ref         string                 `json:"$ref,omitempty"`
	Title       string                 `json:"title,omitempty"`
	Description string                 `json:"description,omitempty"`
	Type        any                    `json:"type,omitempty"`
	Default     any                    `json:"default,omitempty"`
	Minimum     *int                   `json:"minimum,omitempty"`
	Pattern     string                 `json:"pattern,omitempty"`
	Properties  map[string]*schemaNode `json:"properties,omitempty"`
	Required    []string               `json:"required,omitempty"`
	Items       *schemaNode            `json:"items,omitempty"`
	// AdditionalProperties is false, or the *schemaNode of all properties that are not named.
	AdditionalProperties any                    `json:"additionalProperties,omitempty"`
	Definitions          map[string]*schemaNode `json:"definitions,omitempty"`
}

// schema is values.schema.json. A key that the chart does not know is an error, so that a typo does
// not pass; required variables are required here, so that Helm itself names all that are missing.
func (c *contents) schema() ([]byte, error) {
	variables := object(
		"The provider's variables, by name. One that is not set, null or empty has its default.",
		map[string]*schemaNode{},
	)

	variables.Type = "object"
	for _, v := range c.Variables {
		property := &schemaNode{Type: []string{"string", "number", "boolean", "null"}, Description: v.describe()}
		if v.Required {
			property.Type = []string{"string", "number", "boolean"}

			variables.Required = append(variables.Required, v.Name)
		} else if len(v.Defaults) == 1 {
			property.Default = v.Defaults[0]
		}

		variables.Properties[v.Name] = property
	}

	deployments := map[string]*schemaNode{}
	for _, d := range c.Deployments {
		deployments[d.Name] = deploymentSchema(d)
	}

	root := object("", map[string]*schemaNode{
		"variables": variables,
		"imageRegistry": typed(
			"string",
			"Registry, as host[:port][/path], that takes the place of the registry of every image: a mirror.",
		),
		"images": mapOf(
			ref("image"),
			`Parts of images to replace, by the image's name without repository and tag, or "all"; before imageRegistry.`,
		),
		"commonLabels":      texts("Labels for every object but the CRDs."),
		"commonAnnotations": texts("Annotations for every object but the CRDs."),
		"deployments": object(
			"What to change in the provider's Deployments, by name. What is absent or null stays as published.",
			deployments,
		),
		"global": typed("object", "Helm's values for all charts of a release."),
	})
	root.Schema, root.Type, root.Definitions = "http://json-schema.org/draft-07/schema#", "object", definitions()

	root.Title = fmt.Sprintf("Values of %s %s", c.Provider.Label, c.Version)
	if len(variables.Required) > 0 {
		root.Required = []string{"variables"}
	}

	return marshalJSON(root, "  ")
}

func deploymentSchema(d deployment) *schemaNode {
	containers := map[string]*schemaNode{}
	for _, name := range d.names() {
		containers[name] = ref("container")
	}

	zero := 0
	replicas := typed("integer", "How many pods; 0 stops the provider.")
	replicas.Minimum = &zero

	return object("The Deployment "+d.Name+".", map[string]*schemaNode{
		"replicas":     replicas,
		"nodeSelector": texts("Labels of the nodes to run on, in place of the published ones."),
		"tolerations":  listOf(typed("object", ""), "Tolerations, in place of the published ones; [] takes them away."),
		"affinity":     typed("object", "Affinity, in place of the published one."),
		"serviceAccountName": typed(
			"string",
			"ServiceAccount of the pods. The published roles are bound to the published one only.",
		),
		"imagePullSecrets": listOf(named(), "Secrets with credentials for registries, in place of the published ones."),
		"podLabels":        texts("Labels for the pods."),
		"podAnnotations":   texts("Annotations for the pods."),
		"containers":       object("Containers and init containers, by name.", containers),
	})
}

// definitions are the schemas that others refer to.
func definitions() map[string]*schemaNode {
	flag := &schemaNode{Type: []string{"string", "number", "boolean", "null"}}
	reference := &schemaNode{
		Type:                 []string{"string", "object", "null"},
		AdditionalProperties: false,
		Description:          "The image's full reference, or those of its parts that change. It wins over images and imageRegistry.",
		Properties:           imageParts(),
	}

	return map[string]*schemaNode{
		"image": object("Parts of an image's reference; what is not set stays.", imageParts()),
		"container": object("", map[string]*schemaNode{
			"image":   reference,
			"command": listOf(&schemaNode{Type: "string"}, "The command, in place of the published one."),
			"args": mapOf(
				flag,
				"Flags by name, with or without dashes, set among the published arguments; null takes a flag away.",
			),
			"featureGates":   mapOf(&schemaNode{Type: "boolean"}, "Feature gates, merged into the flag --feature-gates."),
			"env":            listOf(named(), "Environment variables, each in place of the published one of its name."),
			"resources":      typed("object", "Resource requests and limits, merged into the published ones."),
			"livenessProbe":  typed("object", "Fields of the liveness probe, merged into the published one."),
			"readinessProbe": typed("object", "Fields of the readiness probe, merged into the published one."),
		}),
	}
}

func imageParts() map[string]*schemaNode {
	return map[string]*schemaNode{
		"repository": typed("string", "All that precedes the name, such as registry.example.com/mirror."),
		"name":       typed("string", "The name."),
		"tag":        typed("string", "The tag; a digest gives way to it."),
	}
}

// typed is a value of a type, or null, which counts as absent.
func typed(kind, description string) *schemaNode {
	return &schemaNode{Type: []string{kind, "null"}, Description: description}
}

// object has these properties and no others.
func object(description string, properties map[string]*schemaNode) *schemaNode {
	node := typed("object", description)
	node.Properties, node.AdditionalProperties = properties, false

	return node
}

func mapOf(values *schemaNode, description string) *schemaNode {
	node := typed("object", description)
	node.AdditionalProperties = values

	return node
}

func listOf(items *schemaNode, description string) *schemaNode {
	node := typed("array", description)
	node.Items = items

	return node
}

// texts is a map of labels or annotations.
func texts(description string) *schemaNode {
	return mapOf(&schemaNode{Type: "string"}, description)
}

// named is an object of Kubernetes with a name.
func named() *schemaNode {
	return &schemaNode{
		Type:       "object",
		Required:   []string{"name"},
		Properties: map[string]*schemaNode{"name": {Type: "string"}},
	}
}

func ref(definition string) *schemaNode { return &schemaNode{Ref: "#/definitions/" + definition} }

// RequiredVariables reads from a chart's schema the names of the variables that have no default,
// sorted, and the names of all.
func RequiredVariables(c *chart.Chart) (required, all []string, err error) {
	schema := c.File(chart.SchemaFile)
	if schema == nil { // a chart that chartgen did not make
		return nil, nil, nil
	}

	var root schemaNode
	if err := json.Unmarshal(schema, &root); err != nil {
		return nil, nil, fmt.Errorf("chart %s: %s: %w", c.Metadata.Name, chart.SchemaFile, err)
	}

	node := root.Properties["variables"]
	if node == nil {
		return nil, nil, nil
	}

	return node.Required, slices.Sorted(maps.Keys(node.Properties)), nil
}

// describe says in one line what a person must know of a variable.
func (v variable) describe() string {
	text := "Required."
	if !v.Required {
		text = "Optional, " + v.defaults() + "."
	}

	return text + " In " + strings.Join(v.Uses, "; ") + "."
}

// defaults tells the default, or all of them where uses differ.
func (v variable) defaults() string {
	if len(v.Defaults) == 0 {
		return "empty by default"
	}

	all := make([]string, len(v.Defaults))
	for i, d := range v.Defaults {
		all[i] = scalar(d)
	}

	return "default " + strings.Join(all, " or ")
}
