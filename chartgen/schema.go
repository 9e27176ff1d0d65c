package chartgen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/expr"
)

// schemaNode is the subset of JSON Schema (draft 7) that values.schema.json uses. It must not refer
// to other documents, because Helm would fetch them.
type schemaNode struct {
	Schema      string                 `json:"$schema,omitempty"`
	Ref         string                 `json:"$ref,omitempty"`
	Title       string                 `json:"title,omitempty"`
	Description string                 `json:"description,omitempty"`
	Type        any                    `json:"type,omitempty"`
	Default     any                    `json:"default,omitempty"`
	Minimum     *int                   `json:"minimum,omitempty"`
	Properties  map[string]*schemaNode `json:"properties,omitempty"`
	Required    []string               `json:"required,omitempty"`
	Items       *schemaNode            `json:"items,omitempty"`
	// AdditionalProperties is false or the *schemaNode of all properties that Properties does not
	// list.
	AdditionalProperties any                    `json:"additionalProperties,omitempty"`
	Definitions          map[string]*schemaNode `json:"definitions,omitempty"`
}

// schema returns the content of values.schema.json. Unknown keys are errors, so that typos do not
// go unnoticed. Required variables are required by the schema, so that Helm itself reports all that
// are missing.
func (c *content) schema() ([]byte, error) {
	variables := c.variablesSchema()

	deployments := map[string]*schemaNode{}
	for _, d := range c.deployments {
		deployments[d.Name] = deploymentSchema(d)
	}

	root := object("", map[string]*schemaNode{
		"variables": variables,
		"imageRegistry": nullable("string",
			"Registry mirror, as host[:port][/path], that replaces the registry of every image."),
		"images": mapOf(ref("image"),
			"Parts of image references to replace, by the image's name without repository and tag, or \"all\". "+
				"Applied before imageRegistry."),
		"commonLabels":      stringMap("Labels for all objects except CRDs."),
		"commonAnnotations": stringMap("Annotations for all objects except CRDs."),
		"deployments": object(
			"Changes to the provider's Deployments, by name. A value that is absent or null stays as published.",
			deployments),
		"paused": nullable("boolean", "Scale all Deployments to zero, whatever other values say."),
		"global": nullable("object", "Values that Helm shares between all charts of a release."),
	})
	root.Schema = "http://json-schema.org/draft-07/schema#"
	root.Title = fmt.Sprintf("Values of %s %s", c.bundle.Provider.Label, version(c.bundle))
	root.Type = "object"
	root.Definitions = definitions()

	if len(variables.Required) > 0 {
		root.Required = []string{"variables"}
	}

	var out bytes.Buffer

	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(root)

	return out.Bytes(), err
}

// variablesSchema returns the schema of the value "variables".
func (c *content) variablesSchema() *schemaNode {
	variables := object(
		"Variables of the provider, by name. A variable that is unset, null, or empty has its default.",
		map[string]*schemaNode{})
	variables.Type = "object"

	for _, v := range c.variables {
		property := &schemaNode{Type: []string{"string", "number", "boolean", "null"}, Description: describe(v)}

		switch {
		case v.Required:
			property.Type = []string{"string", "number", "boolean"}

			variables.Required = append(variables.Required, v.Name)
		case len(v.Defaults) == 1 && !v.IsDerived():
			property.Default = v.Defaults[0]
		}

		variables.Properties[v.Name] = property
	}

	return variables
}

func deploymentSchema(d Deployment) *schemaNode {
	containers := map[string]*schemaNode{}
	for _, name := range d.Containers {
		containers[name] = ref("container")
	}

	zero := 0
	replicas := nullable("integer", "Number of pods. 0 stops the provider.")
	replicas.Minimum = &zero

	return object("Changes to the Deployment "+d.Name+".", map[string]*schemaNode{
		"replicas": replicas,
		"highAvailability": nullable("boolean",
			"Run two pods, on different nodes if there are several, replace them without interruption, and limit how many "+
				"are evicted at once. What is published or set by other values takes precedence."),
		"nodeSelector": stringMap("Node labels. Replaces the published nodeSelector."),
		"tolerations":  listOf(nullable("object", ""), "Replaces the published tolerations. [] removes them."),
		"affinity":     nullable("object", "Replaces the published affinity."),
		"serviceAccountName": nullable("string",
			"ServiceAccount of the pods. The published role bindings cover only the published ServiceAccount."),
		"imagePullSecrets":  listOf(namedObject(), "Secrets with registry credentials. Replaces the published ones."),
		"priorityClassName": nullable("string", "Priority class of the pods."),
		"topologySpreadConstraints": listOf(nullable("object", ""),
			"Replaces the published topologySpreadConstraints. [] removes them."),
		"securityContext": nullable("object", "Fields to merge into the published security context of the pods."),
		"podLabels":       stringMap("Labels to add to the pods."),
		"podAnnotations":  stringMap("Annotations to add to the pods."),
		"containers":      object("Changes to containers and init containers, by name.", containers),
	})
}

// definitions returns the schemas that ref refers to.
func definitions() map[string]*schemaNode {
	flagValue := &schemaNode{Type: []string{"string", "number", "boolean", "null"}}
	image := &schemaNode{
		Type:                 []string{"string", "object", "null"},
		AdditionalProperties: false,
		Description: "Full image reference, or the parts of it to replace. " +
			"Takes precedence over images and imageRegistry.",
		Properties: imageParts(),
	}

	return map[string]*schemaNode{
		"image": object("Parts of an image reference to replace. A part that is absent stays as published.", imageParts()),
		"container": object("", map[string]*schemaNode{
			"image":   image,
			"command": listOf(&schemaNode{Type: "string"}, "Replaces the published command."),
			"args": mapOf(flagValue,
				"Flags by name, with or without leading dashes, to set in the published arguments. null removes a flag."),
			"featureGates": mapOf(&schemaNode{Type: "boolean"}, "Feature gates to merge into the flag --feature-gates."),
			"env": listOf(namedObject(),
				"Environment variables. Each one replaces the published variable of the same name, or is added."),
			"resources":      nullable("object", "Resource requests and limits to merge into the published ones."),
			"livenessProbe":  nullable("object", "Fields to merge into the published liveness probe."),
			"readinessProbe": nullable("object", "Fields to merge into the published readiness probe."),
		}),
	}
}

func imageParts() map[string]*schemaNode {
	return map[string]*schemaNode{
		"repository": nullable("string", "Everything before the name, for example registry.example.com/mirror."),
		"name":       nullable("string", "Name of the image."),
		"tag":        nullable("string", "Tag of the image. A published digest stays and takes precedence over it."),
	}
}

// nullable returns the schema of a value of the given type. It also accepts null, which counts as
// absent.
func nullable(kind, description string) *schemaNode {
	return &schemaNode{Type: []string{kind, "null"}, Description: description}
}

// object returns the schema of an object that has no other properties than these.
func object(description string, properties map[string]*schemaNode) *schemaNode {
	node := nullable("object", description)
	node.Properties = properties
	node.AdditionalProperties = false

	return node
}

// mapOf returns the schema of a map with any keys.
func mapOf(values *schemaNode, description string) *schemaNode {
	node := nullable("object", description)
	node.AdditionalProperties = values

	return node
}

// listOf returns the schema of a list.
func listOf(items *schemaNode, description string) *schemaNode {
	node := nullable("array", description)
	node.Items = items

	return node
}

// stringMap returns the schema of labels or annotations.
func stringMap(description string) *schemaNode {
	return mapOf(&schemaNode{Type: "string"}, description)
}

// namedObject returns the schema of an object with a name and any other fields.
func namedObject() *schemaNode {
	return &schemaNode{
		Type:       "object",
		Required:   []string{"name"},
		Properties: map[string]*schemaNode{"name": {Type: "string"}},
	}
}

// ref returns a reference to one of the definitions.
func ref(definition string) *schemaNode { return &schemaNode{Ref: "#/definitions/" + definition} }

// Variable is a variable of a provider.
type Variable struct {
	Name     string `json:"name"`
	Required bool   `json:"required,omitempty"`
	// Default is nil if there is none, or if uses of the variable differ in it.
	Default any `json:"default,omitempty"`
	// Description is one line about whether it is required, and its defaults.
	Description string `json:"description"`
}

// Variables reads a chart's schema and returns the provider's variables, sorted by name; none for a chart that was not
// built by this package.
func Variables(c *chart.Chart) ([]Variable, error) {
	schema := c.File(chart.SchemaFile)
	if schema == nil {
		return nil, nil
	}

	var root schemaNode
	if err := json.Unmarshal(schema, &root); err != nil {
		return nil, fmt.Errorf("chart %s: %s: %w", c.Metadata.Name, chart.SchemaFile, err)
	}

	node := root.Properties["variables"]
	if node == nil {
		return nil, nil
	}

	variables := make([]Variable, 0, len(node.Properties))

	for _, name := range slices.Sorted(maps.Keys(node.Properties)) {
		property := node.Properties[name]
		variables = append(variables, Variable{
			Name:        name,
			Required:    slices.Contains(node.Required, name),
			Default:     property.Default,
			Description: property.Description,
		})
	}

	return variables, nil
}

// RequiredVariables returns the names of the variables without a default and of all variables, both sorted. The error
// is that of Variables.
func RequiredVariables(c *chart.Chart) (required, all []string, err error) {
	variables, err := Variables(c)
	for _, v := range variables {
		all = append(all, v.Name)

		if v.Required {
			required = append(required, v.Name)
		}
	}

	return required, all, err
}

// describe returns a one-line description of a variable.
func describe(v expr.Variable) string {
	if v.Required {
		return "Required."
	}

	return "Optional, " + defaultOf(v) + "."
}

// defaultOf describes the default of a variable, or all of them if uses differ.
func defaultOf(v expr.Variable) string {
	if len(v.Defaults) == 0 {
		return "empty by default"
	}

	quoted := make([]string, 0, len(v.Defaults))
	for _, word := range v.Defaults {
		quoted = append(quoted, quote(word))
	}

	return "default " + strings.Join(quoted, " or ")
}

// quote returns a text as YAML has it, on one line: Unicode has more line breaks than some readers of YAML know.
func quote(text string) string {
	isSpecial := func(r rune) bool { return r < ' ' || r > '~' }

	written, err := yaml.Marshal(text)
	if line := strings.TrimSuffix(string(written), "\n"); err == nil && !strings.ContainsFunc(line, isSpecial) {
		return line
	}

	return strconv.QuoteToASCII(text)
}
