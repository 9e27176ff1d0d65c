package chartgen

import (
	"fmt"
	"strings"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/expr"
	"github.com/capstan-project/capstan/chartgen/helm"
)

// renderedTexts checks that Helm renders the text of each object as published. This is what makes a
// chart equal to what clusterctl applies: everything else is done to the parsed object. It is exact,
// because it uses Helm's own engine, and cheap, because it parses no YAML.
type renderedTexts struct {
	pending []definedText
	size    int // in bytes, of all pending texts
}

// definedText is a named template with the text of an object, before it is checked.
type definedText struct {
	doc          *bundle.Document
	name, define string
}

// maxPending limits the texts in bytes that Helm renders at once, and with it the memory.
const maxPending = 1 << 20

// add checks the text of an object, at the latest with the next call of check.
func (r *renderedTexts) add(doc *bundle.Document, name, define string) error {
	r.pending = append(r.pending, definedText{doc, name, define})

	if r.size += len(define); r.size < maxPending {
		return nil
	}

	return r.check()
}

// check renders the pending texts, with the defaults of their variables, and compares them with what
// clusterctl's processor returns. The error is a *bundle.InvalidError.
func (r *renderedTexts) check() error {
	rendered, err := r.render()
	if err != nil {
		return err
	}

	for _, text := range r.pending {
		want, err := text.doc.Text.Expand(text.doc.Values())
		if err != nil {
			return err
		}

		got := strings.TrimPrefix(rendered[text.name+".yaml"], "\n")
		if got != want {
			return text.invalid(got, want)
		}
	}

	*r = renderedTexts{}

	return nil
}

// render renders the pending texts with Helm, by the names of their templates.
func (r *renderedTexts) render() (map[string]string, error) {
	c := &helm.Chart{
		Metadata:  &helm.Metadata{},
		Templates: []*helm.File{{Name: chart.TemplatesDir + "_expr.tpl", Data: []byte(expr.Helpers)}},
	}
	variables := map[string]any{}

	for _, text := range r.pending {
		for name, value := range text.doc.Values() {
			variables[name] = value
		}

		// Helm deletes the words from what a file renders, once, but not from what "include" returns.
		template := text.define +
			fmt.Sprintf("{{- include %q . | replace \"<no value>\" \"<no <no value>value>\" -}}\n", text.name)
		c.Templates = append(c.Templates, &helm.File{Name: text.name + ".yaml", Data: []byte(template)})
	}

	values := map[string]any{"Values": map[string]any{"variables": variables}}

	return helm.Execute(c, values)
}

// invalid returns the error for a text that Helm would change.
func (t definedText) invalid(got, want string) error {
	same := 0
	for same < min(len(got), len(want)) && got[same] == want[same] {
		same++
	}

	return &bundle.InvalidError{
		File: bundle.ComponentsFile,
		Line: t.doc.Line + strings.Count(want[:same], "\n"),
		Reason: fmt.Sprintf("Helm would render %s differently from here on: %q instead of %q",
			t.doc, firstLine(got[same:]), firstLine(want[same:])),
	}
}

// firstLine returns the beginning of a text, at most up to the end of its first line.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")

	return shorten(line)
}
