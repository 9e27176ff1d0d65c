// Package variables finds out with which values of its variables a provider was installed, by comparing its
// chart with the objects in the cluster. It is pure: it reads nothing, and never logs a value.
package variables

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/chartgen"
	"github.com/capstan-project/capstan/chartgen/chart"
	"github.com/capstan-project/capstan/chartgen/render"
	"github.com/capstan-project/capstan/controllers/release/manifest"
)

// Template is the chart of a provider's version, rendered so that it is known which fields of its objects
// come from variables.
type Template struct {
	chart     *chart.Chart
	namespace string

	names    []string // of all variables, sorted
	required []string

	// marked and plain are the same objects, with a mark and with the default in place of each variable.
	marked, plain []*unstructured.Unstructured
}

// Result is what is known of the variables.
type Result struct {
	// Values are those that a chart has to be rendered with, by name. Variables that have their default are
	// left out.
	Values map[string]string
	// Unknown are the variables whose values could not be found, sorted by name.
	Unknown []Unknown
}

// Unknown is a variable whose value could not be found.
type Unknown struct {
	Name string `json:"name"`
	// Required is set if the variable has no default.
	Required bool `json:"required,omitempty"`
	// Reason is why the value is unknown.
	Reason string `json:"reason"`
}

// NewTemplate renders the chart of a provider that is installed in a namespace.
func NewTemplate(c *chart.Chart, namespace string) (*Template, error) {
	required, names, err := chartgen.RequiredVariables(c)
	if err != nil {
		return nil, err
	}

	t := &Template{chart: c, namespace: namespace, names: names, required: required}

	if t.plain, err = t.render(nil); err != nil {
		return nil, err
	}

	if t.marked, err = t.render(t.marks()); err != nil {
		return nil, err
	}

	if len(t.plain) != len(t.marked) {
		return nil, fmt.Errorf("which objects chart %s has depends on its variables, so their values cannot be "+
			"found; set them in the Secret of the resource", c.Metadata.Name)
	}

	return t, nil
}

// marks returns a mark for each variable.
func (t *Template) marks() map[string]string {
	values := map[string]string{}
	for i, name := range t.names {
		values[name] = mark(i)
	}

	return values
}

// render returns the objects of the chart with these values of variables.
func (t *Template) render(values map[string]string) ([]*unstructured.Unstructured, error) {
	variables := map[string]any{}
	for name, value := range values {
		variables[name] = value
	}

	text, err := render.Manifest(t.chart, t.namespace, map[string]any{"variables": variables})
	if err != nil {
		return nil, err
	}

	objects, err := manifest.Decode(text)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", t.chart.Metadata.Name, err)
	}

	return objects, nil
}

// Objects returns those objects of the chart that show values of variables, as they are with the defaults.
// They lack a namespace if they are in that of the release.
func (t *Template) Objects() []*unstructured.Unstructured {
	var found []*unstructured.Unstructured

	for i, o := range t.marked {
		if hasMark(o.Object) {
			found = append(found, t.plain[i])
		}
	}

	return found
}

// Recover returns the values that the live objects were rendered with. The function returns the live object
// of one of Objects, or nil if there is none.
func (t *Template) Recover(live func(*unstructured.Unstructured) *unstructured.Unstructured) Result {
	found := findings{}

	for i, marked := range t.marked {
		if !hasMark(marked.Object) {
			continue
		}

		w := walk{findings: found, index: i, name: t.plain[i].GetKind() + " " + t.plain[i].GetName()}

		if current := live(t.plain[i]); current == nil {
			w.missing(marked.Object, w.name+" does not exist")
		} else {
			w.value(marked.Object, t.plain[i].Object, inForm(current, marked), nil)
		}
	}

	return t.result(found)
}

// result decides about each variable.
func (t *Template) result(found findings) Result {
	result := Result{Values: map[string]string{}}

	for i, name := range t.names {
		required := slices.Contains(t.required, name)

		value, reason := t.decide(i, found.of(i))

		switch {
		case reason != "":
			result.Unknown = append(result.Unknown, Unknown{Name: name, Required: required, Reason: reason})
		case required || found.of(i).changed:
			result.Values[name] = value
		}
	}

	return result
}

// decide returns the value of a variable, or why it is unknown.
func (t *Template) decide(index int, f *finding) (value, reason string) {
	switch len(f.values) {
	case 0:
		return "", cmp.Or(f.problem, "no object shows its value")
	case 1:
	default:
		return "", "different objects show different values"
	}

	for shown := range f.values {
		text, exists := t.encode(index, shown, f.sites)
		if !exists {
			return "", "no value of it results in what the objects show"
		}

		value = text
	}

	return value, ""
}
