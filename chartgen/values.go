package chartgen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// valuesHead is values.yaml up to the variables.
const valuesHead = `# Values of %s %s.

# The provider's variables, by name. One that is not set, null or empty has its default.
variables: {}
`

// valuesTail is what follows the variables, up to the Deployments.
const valuesTail = `
# Registry, as host[:port][/path], that takes the place of the registry of every image: a mirror.
imageRegistry: ""

# Parts of images to replace, by the image's name without repository and tag, or "all". imageRegistry comes after that.
images: {}
  # all: {repository: registry.example.com/mirror}
  # %s: {repository: registry.example.com/mirror, name: %[1]s, tag: latest}

# Labels and annotations for every object but the CRDs.
commonLabels: {}
commonAnnotations: {}

# What to change in the provider's Deployments, by name, and in their containers and init containers. Below is what the provider
# publishes; write down only what shall differ. Also known, by their name in Kubernetes: nodeSelector, tolerations, affinity,
# serviceAccountName, imagePullSecrets, each in place of the published one; podLabels, podAnnotations; in containers command, in place
# of the published one; env, by name; resources, livenessProbe and readinessProbe, merged. args are flags by name, and null
# takes one away. featureGates are merged into the flag --feature-gates.
deployments: {}
`

// valuesFile is values.yaml. The provider's own defaults stay in the templates, where each use of a
// variable may have its own; here they are only told.
func (c *contents) valuesFile() []byte {
	var out strings.Builder
	fmt.Fprintf(&out, valuesHead, c.Provider.Label, c.Version)

	for _, v := range c.Variables {
		example := `""`
		if len(v.Defaults) > 0 {
			example = scalar(v.Defaults[0])
		}

		if v.Required {
			example += " # required"
		}

		for _, use := range v.Uses {
			comment(&out, use)
		}

		if len(v.Defaults) > 1 {
			comment(&out, v.defaults())
		}

		comment(&out, v.Name+": "+example)
	}

	name := "controller"
	if len(c.Images) > 0 {
		name = imageName(c.Images[0])
	}

	fmt.Fprintf(&out, valuesTail, name)

	for _, d := range c.Deployments {
		d.describe(&out)
	}

	return []byte(out.String())
}

// describe writes a Deployment as published, as comments in the shape of the values.
func (d deployment) describe(out *strings.Builder) {
	comment(out, d.Name+":")
	describeFields(out, "  ", d.spec, "replicas")
	describeFields(out, "  ", podSpec(map[string]any{"kind": "Deployment", "spec": d.spec}),
		"nodeSelector", "tolerations", "affinity", "serviceAccountName", "imagePullSecrets")
	comment(out, "  containers:")

	for _, container := range d.containers {
		comment(out, fmt.Sprintf("    %v:", container["name"]))
		describeFields(out, "      ", container, "image", "command")
		args, gates := flags(container["args"])
		describeEntries(out, "args", args)
		describeEntries(out, "featureGates", gates)
		describeFields(out, "      ", container, "env", "resources", "livenessProbe", "readinessProbe")
	}
}

// describeFields writes those of the fields that the object has, each on a line.
func describeFields(out *strings.Builder, indent string, object map[string]any, fields ...string) {
	for _, field := range fields {
		if value, ok := object[field]; ok {
			comment(out, indent+field+": "+literal(value))
		}
	}
}

// describeEntries writes a field of a container that is a map, if it has entries.
func describeEntries(out *strings.Builder, field string, entries []string) {
	if len(entries) == 0 {
		return
	}

	comment(out, "      "+field+":")

	for _, entry := range entries {
		comment(out, "        "+entry)
	}
}

var flag = regexp.MustCompile(`(?s)^--?([^=]+)(?:=(.*))?$`)

// flags takes a container's arguments apart into entries of args and of featureGates, as YAML. What
// is no flag is left out, and of a flag that is there twice all but the last.
func flags(args any) (entries, gates []string) {
	list, _ := args.([]any)
	for i, arg := range list {
		m := flag.FindStringSubmatch(fmt.Sprint(arg))
		switch {
		case m == nil:
		case m[1] == "feature-gates":
			for gate := range strings.SplitSeq(strings.Trim(m[2], `"' `), ",") {
				if name, value, found := strings.Cut(gate, "="); found {
					gates = append(gates, name+": "+scalar(value))
				}
			}
		default:
			value := scalar(m[2])
			if !strings.Contains(m[0], "=") {
				value = "true"
				if i+1 < len(list) && !flag.MatchString(fmt.Sprint(list[i+1])) {
					value = scalar(fmt.Sprint(list[i+1]))
				}
			}

			entries = slices.DeleteFunc(entries, func(e string) bool { return strings.HasPrefix(e, m[1]+": ") })
			entries = append(entries, m[1]+": "+value)
		}
	}

	return entries, gates
}

// comment writes text as a line of comment, indented as a key of a map.
func comment(out *strings.Builder, text string) {
	fmt.Fprintf(out, "  # %s\n", strings.ReplaceAll(text, "\n", " "))
}

// imageName is the last element of an image's path, without tag and digest.
func imageName(image string) string {
	name := image[strings.LastIndexByte(image, '/')+1:]
	if end := strings.IndexAny(name, ":@"); end >= 0 {
		name = name[:end]
	}

	return name
}

// literal writes a value on one line: text as scalar does, all else as JSON, which is YAML.
func literal(value any) string {
	if text, ok := value.(string); ok {
		return scalar(text)
	}

	data, err := marshalJSON(value, "")
	if err != nil {
		return fmt.Sprint(value)
	}

	return strings.TrimSpace(string(data))
}

// marshalJSON leaves <, > and & as they are.
func marshalJSON(value any, indent string) ([]byte, error) {
	var out bytes.Buffer

	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	err := encoder.Encode(value)

	return out.Bytes(), err
}

var plain = regexp.MustCompile(`^[A-Za-z0-9_/][A-Za-z0-9_./:=,;*+@-]*$`)

// scalar writes text as YAML that reads back as that text, or as the number or boolean that is
// written like it: in the plainest form.
func scalar(text string) string {
	var value any
	if plain.MatchString(text) && yaml.Unmarshal([]byte(text), &value) == nil {
		switch value := value.(type) {
		case string:
			return text
		case bool, float64:
			if literal(value) == text {
				return text
			}
		}
	}

	if quoted := strconv.Quote(text); strings.ContainsAny(text, "'\\") ||
		len(quoted) != len(text)+2+strings.Count(text, `"`) {
		return quoted
	}

	return "'" + text + "'"
}
