package chartgen

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"strings"
	"text/template"

	"github.com/capstan-project/capstan/chartgen/bundle"
)

const (
	valuesHead = `# Values of %s %s. README.md has the fields of each.

# Variables of the provider. A variable that is unset, null, or empty has its default. Values are text: put in quotes
# what Helm would read as something else, such as "1.0", or use --set-string.
variables: {}
`
	valuesTail = `
# Registry mirror, as host[:port][/path], that replaces the registry of every image.
imageRegistry: ""

# repository, name and tag of images, by the image's name, or "all". Applied before imageRegistry.
images: {}

# Labels and annotations for all objects except CRDs.
commonLabels: {}
commonAnnotations: {}

# Changes to the provider's Deployments, by name, and to their containers.
deployments: {}

# Scale all Deployments to zero.
paused: false
`
)

// valuesFile returns the content of values.yaml. It shows the defaults of variables in comments only, because each use
// of a variable may have another one.
func (c *content) valuesFile() []byte {
	var out strings.Builder
	fmt.Fprintf(&out, valuesHead, c.bundle.Provider.Label, version(c.bundle))

	for _, v := range c.variables {
		switch {
		case v.Required:
			fmt.Fprintf(&out, "  # %s: \"\" # required\n", v.Name)
		case len(v.Defaults) == 0:
			fmt.Fprintf(&out, "  # %s: \"\"\n", v.Name)
		case v.IsDerived(): // a value is text, in which no expression is replaced
			fmt.Fprintf(&out, "  # %s: \"\" # %s\n", v.Name, defaultOf(v))
		default:
			fmt.Fprintf(&out, "  # %s: %s\n", v.Name, quote(v.Defaults[0]))
		}
	}

	out.WriteString(valuesTail)

	return []byte(out.String())
}

//go:embed readme.md.tmpl
var readmeText string

var readmeTemplate = template.Must(template.New("README.md").Funcs(template.FuncMap{
	"cell": func(text string) string { return strings.ReplaceAll(text, "|", `\|`) },
	"line": func(text string) string { return strings.Join(strings.Fields(text), " ") },
	"join": strings.Join,
}).Parse(readmeText))

// readme returns the content of README.md.
func (c *content) readme() ([]byte, error) {
	var required, flavors, others []string

	descriptions := map[string]string{}

	for _, v := range c.variables {
		descriptions[v.Name] = describe(v)

		if v.Required {
			required = append(required, v.Name)
		}
	}

	for _, t := range c.bundle.Templates {
		switch flavor, isTemplate := bundle.Flavor(t.Name); {
		case !isTemplate:
			others = append(others, t.Name)
		case flavor == "":
			flavors = append(flavors, "the default")
		default:
			flavors = append(flavors, flavor)
		}
	}

	var out bytes.Buffer

	err := readmeTemplate.Execute(&out, map[string]any{
		"Provider":    c.bundle.Provider,
		"Version":     strings.TrimPrefix(version(c.bundle), "v"),
		"Contract":    c.contract,
		"Namespace":   cmp.Or(c.namespace, c.bundle.Provider.Label),
		"Kinds":       c.requiredKinds,
		"Required":    required,
		"Variables":   descriptions,
		"Deployments": c.deployments,
		"Images":      c.images,
		"Flavors":     flavors,
		"Others":      others,
	})

	return out.Bytes(), err
}
