package chartgen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/capstan-project/capstan/chartgen/blockyaml"
	"github.com/capstan-project/capstan/chartgen/bundle"
)

// valuesHead is values.yaml up to the variables.
const valuesHead = `# Values of %s %s.

# Variables of the provider, by name. A variable that is unset, null, or empty has its default.
#
# Values are text. Helm reads what is not quoted as YAML, and changes some of it: 1.0 to 1, 0755 to 493,
# yes to true, and numbers of more than 15 digits. Write "1.0" instead, or use --set-string.
variables: {}
`

// valuesTail is values.yaml from the variables to the Deployments.
const valuesTail = `
# Registry mirror, as host[:port][/path], that replaces the registry of every image.
imageRegistry: ""

# Parts of image references to replace, by the image's name without repository and tag, or "all".
# Applied before imageRegistry.
images: {}
  # all: {repository: registry.example.com/mirror}
  # %s: {repository: registry.example.com/mirror, name: %[1]s, tag: latest}

# Labels and annotations for all objects except CRDs.
commonLabels: {}
commonAnnotations: {}

# Changes to the provider's Deployments, by name, and to their containers and init containers. The
# comments below show what the provider publishes; set only what should differ.
#
# These values replace the published ones: replicas, nodeSelector, tolerations, affinity,
# serviceAccountName, imagePullSecrets, priorityClassName, and topologySpreadConstraints; in
# containers, image and command.
# These values are merged into the published ones: podLabels, podAnnotations, and securityContext; in
# containers, args (flags by name; null removes a flag), featureGates (merged into the flag
# --feature-gates), env (by name), resources, livenessProbe, and readinessProbe.
# highAvailability: true runs two pods, on different nodes if there are several, so that requests to webhooks are
# answered while pods are replaced. What is published or set here takes precedence.
deployments: {}
`

// valuesFile returns the content of values.yaml. It shows the defaults of variables in comments
// only. They stay in the templates, because each use of a variable may have another default.
func (s *summary) valuesFile() []byte {
	var out strings.Builder
	fmt.Fprintf(&out, valuesHead, s.Provider.Label, s.Version)

	for _, v := range s.Variables {
		v.writeComments(&out)
	}

	exampleImage := "controller"
	if len(s.Images) > 0 {
		exampleImage = oneLine(imageName(s.Images[0]))
	}

	fmt.Fprintf(&out, valuesTail, exampleImage)

	for _, d := range s.Deployments {
		d.writeComments(&out)
	}

	return []byte(out.String())
}

// writeComments writes where a variable is used, and the variable with its default.
func (v variable) writeComments(out *strings.Builder) {
	for _, use := range v.Uses {
		comment(out, use)
	}

	if len(v.Defaults) > 1 {
		comment(out, v.defaultText())
	}

	value := `""`
	if len(v.Defaults) > 0 {
		value = scalar(v.Defaults[0])
	}

	if v.Required {
		value += " # required"
	}

	comment(out, v.Name+": "+value)
}

// writeComments writes what a Deployment publishes, in the structure of the values.
func (d deployment) writeComments(out *strings.Builder) {
	comment(out, d.Name+":")
	commentFields(out, "  ", d.spec, "replicas")

	pod := bundle.NestedMap(d.spec, "template", "spec")
	commentFields(out, "  ", pod, "nodeSelector", "tolerations", "affinity", "serviceAccountName", "imagePullSecrets",
		"priorityClassName", "topologySpreadConstraints", "securityContext")

	comment(out, "  containers:")

	for _, container := range d.containers {
		comment(out, fmt.Sprintf("    %v:", container["name"]))
		commentFields(out, "      ", container, "image", "command")

		args, gates := parseFlags(container["args"])
		commentEntries(out, "args", args)
		commentEntries(out, "featureGates", gates)

		commentFields(out, "      ", container, "env", "resources", "livenessProbe", "readinessProbe")
	}
}

// commentFields writes the given fields of an object, one on each line, without those that it
// lacks.
func commentFields(out *strings.Builder, indent string, object map[string]any, fields ...string) {
	for _, field := range fields {
		if value, ok := object[field]; ok {
			comment(out, indent+field+": "+literal(value))
		}
	}
}

// commentEntries writes a field of a container that is a map, unless it is empty.
func commentEntries(out *strings.Builder, field string, entries []string) {
	if len(entries) == 0 {
		return
	}

	comment(out, "      "+field+":")

	for _, entry := range entries {
		comment(out, "        "+entry)
	}
}

var flag = regexp.MustCompile(`(?s)^--?([^=]+)(?:=(.*))?$`)

// parseFlags converts a container's arguments to entries of the values args and featureGates, in
// YAML. It ignores arguments that are not flags. If a flag is repeated, the last one counts.
func parseFlags(args any) (entries, gates []string) {
	index := map[string]int{} // of the entries, by flag
	list, _ := args.([]any)

	for i, arg := range list {
		m := flag.FindStringSubmatch(fmt.Sprint(arg))
		if m == nil {
			continue
		}

		text, name, value := m[0], m[1], m[2]
		if name == "feature-gates" {
			gates = append(gates, parseFeatureGates(value)...)
			continue
		}

		if !strings.Contains(text, "=") {
			value = separateValue(list[i+1:])
		}

		if earlier, repeated := index[name]; repeated {
			entries[earlier] = ""
		}

		index[name] = len(entries)
		entries = append(entries, name+": "+scalar(value))
	}

	return slices.DeleteFunc(entries, func(entry string) bool { return entry == "" }), gates
}

// parseFeatureGates converts the value of the flag --feature-gates to entries of the value
// featureGates.
func parseFeatureGates(flagValue string) []string {
	var gates []string

	for gate := range strings.SplitSeq(strings.Trim(flagValue, `"' `), ",") {
		if name, value, found := strings.Cut(gate, "="); found {
			gates = append(gates, name+": "+scalar(value))
		}
	}

	return gates
}

// separateValue returns the value of a flag without "=": the next argument, or "true" if that is
// another flag.
func separateValue(next []any) string {
	if len(next) == 0 || flag.MatchString(fmt.Sprint(next[0])) {
		return "true"
	}

	return fmt.Sprint(next[0])
}

// comment writes a line of text as a comment, indented like a key of a map.
func comment(out *strings.Builder, text string) {
	fmt.Fprintf(out, "  # %s\n", oneLine(text))
}

// oneLine replaces all characters that end a line in YAML, and with it a comment, and escapes those that YAML does not
// allow even in comments, and byte order marks, which the YAML library mistakes there.
func oneLine(text string) string {
	var out strings.Builder

	for _, r := range text {
		switch {
		case r == '\n', r == '\r', r == '\u0085', r == '\u2028', r == '\u2029':
			out.WriteByte(' ')
		case r != '\t' && r < ' ', r >= 0x7f && r < 0xa0, r == '\ufeff', r == '\ufffe', r == '\uffff':
			out.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		default:
			out.WriteRune(r)
		}
	}

	return out.String()
}

// imageName returns the last path element of an image reference, without tag and digest.
func imageName(image string) string {
	name := image[strings.LastIndexByte(image, '/')+1:]
	if end := strings.IndexAny(name, ":@"); end >= 0 {
		name = name[:end]
	}

	return name
}

// literal returns a value as YAML on one line: a string as scalar does, anything else as JSON.
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

// marshalJSON encodes a value without escaping <, >, and &.
func marshalJSON(value any, indent string) ([]byte, error) {
	var out bytes.Buffer

	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	err := encoder.Encode(value)

	return out.Bytes(), err
}

var plain = regexp.MustCompile(`^[A-Za-z0-9_/][A-Za-z0-9_./:=,;*+@-]*$`)

// scalar returns text as a YAML scalar that parses as this text, or as the number or boolean that
// is written the same way. It uses quotes only where they are necessary.
func scalar(text string) string {
	if plain.MatchString(text) {
		parsed, _ := blockyaml.Unmarshal("value: " + text + "\n") // nil if it is not YAML

		switch value := parsed["value"].(type) {
		case string:
			return text
		case bool, float64:
			if literal(value) == text {
				return text
			}
		}
	}

	// Single quotes take the text literally, so they cannot hold what needs an escape sequence.
	quoted := strconv.Quote(text)
	escaped := len(quoted) != len(text)+2+strings.Count(text, `"`)

	if escaped || strings.ContainsAny(text, `'\`) {
		return quoted
	}

	return "'" + text + "'"
}
