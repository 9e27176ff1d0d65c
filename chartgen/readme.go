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
	"cell": tableCell,
	"code": code,
}).Parse(readmeText))

// readme returns the content of README.md.
func (s *summary) readme() ([]byte, error) {
	var out bytes.Buffer

	err := readmeTemplate.Execute(&out, s)

	return out.Bytes(), err
}

// tableCell escapes text for a cell of a Markdown table.
func tableCell(text string) string { return strings.ReplaceAll(oneLine(text), "|", `\|`) }

// code formats text as code in Markdown.
func code(text string) string {
	if strings.Contains(text, "`") {
		return "`` " + text + " ``"
	}

	return "`" + text + "`"
}

// Archive returns the file name of the chart's archive.
func (s *summary) Archive() string {
	return s.Provider.Label + "-" + strings.TrimPrefix(s.Version, "v") + ".tgz"
}

// SetFlags returns the helm flags that set the required variables.
func (s *summary) SetFlags() string {
	var flags strings.Builder
	for _, name := range s.required() {
		flags.WriteString(" \\\n  --set variables." + name + "=…")
	}

	return flags.String()
}

// Default returns the default of a variable in Markdown, or all of them if uses differ.
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
