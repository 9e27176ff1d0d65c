package chartgen

import (
	"bytes"
	_ "embed"
	"strings"
	"text/template"
)

//go:embed readme.md.tmpl
var readmeText string

var readmeTemplate = template.Must(template.New("README.md").Funcs(template.FuncMap{
	"join": strings.Join,
	"cell": func(text string) string { return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text) },
	"code": code,
}).Parse(readmeText))

// readme is README.md.
func (c *contents) readme() ([]byte, error) {
	var out bytes.Buffer

	err := readmeTemplate.Execute(&out, c)

	return out.Bytes(), err
}

// code writes text as code in Markdown.
func code(text string) string {
	if strings.Contains(text, "`") {
		return "`` " + text + " ``"
	}

	return "`" + text + "`"
}

// Chart is the name of the chart's archive.
func (c *contents) Chart() string {
	return c.Provider.Label + "-" + strings.TrimPrefix(c.Version, "v") + ".tgz"
}

// SetRequired are the flags of helm that set the required variables.
func (c *contents) SetRequired() string {
	var flags strings.Builder
	for _, name := range c.required() {
		flags.WriteString(" \\\n  --set variables." + name + "=…")
	}

	return flags.String()
}

// Default is the variable's default for a table's cell.
func (v variable) Default() string {
	if v.Required {
		return "required"
	}

	all := make([]string, len(v.Defaults))
	for i, d := range v.Defaults {
		all[i] = code(scalar(d))
	}

	return strings.Join(all, " or ")
}

// Containers are the names of the Deployment's containers, for people.
func (d deployment) Containers() string { return strings.Join(d.names(), ", ") }
