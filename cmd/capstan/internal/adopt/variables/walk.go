package variables

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// findings are what the objects show of each variable, by its index.
type findings map[int]*finding

// finding is what the objects show of one variable.
type finding struct {
	// values are the distinct values that fields show, as text, and sites the fields.
	values map[string]bool
	sites  []site
	// changed is set if a field with the variable differs from the default.
	changed bool
	// problem is why a field did not show the value; empty if there is no such field.
	problem string
}

// site is a field that shows the value of a variable.
type site struct {
	object int // index in the template
	path   path
	marked string
	live   any
}

// of returns what is known of a variable, to be added to.
func (f findings) of(index int) *finding {
	if f[index] == nil {
		f[index] = &finding{values: map[string]bool{}}
	}

	return f[index]
}

// walk compares one object with its template.
type walk struct {
	findings

	index int    // of the object in the template
	name  string // its kind and name
}

// value compares a field, or the whole object: with marks, with defaults, and as it is in the cluster.
func (w *walk) value(marked, plain, live any, at path) {
	switch marked := marked.(type) {
	case map[string]any:
		liveMap, isMap := live.(map[string]any)
		if !isMap && hasMark(marked) {
			w.missing(marked, fmt.Sprintf("%s has no %s", w.name, at))
			return
		}

		plainMap, _ := plain.(map[string]any)

		for _, key := range sortedKeys(marked) {
			w.value(marked[key], plainMap[key], liveMap[key], at.to(key))
		}
	case []any:
		w.list(marked, plain, live, at)
	case string:
		w.text(marked, plain, live, at)
	}
}

// list compares the items of a list that have marks. Items with a name are found by it, and text by what it
// has besides variables, because users and webhooks add items.
func (w *walk) list(marked []any, plain, live any, at path) {
	liveItems, _ := live.([]any)
	plainItems, _ := plain.([]any)

	for i, item := range marked {
		if !hasMark(item) {
			continue
		}

		current, found := pick(item, i, len(marked), liveItems)
		if !found {
			w.missing(item, fmt.Sprintf("%s: %s has no such item, or several", w.name, at))
			continue
		}

		var standard any
		if i < len(plainItems) {
			standard = plainItems[i]
		}

		w.value(item, standard, current, at.to(i))
	}
}

// pick returns the item of a live list that an item of a template has become.
func pick(item any, index, length int, live []any) (any, bool) {
	switch item := item.(type) {
	case map[string]any:
		if name, named := item["name"].(string); named && !hasMark(name) {
			i := slices.IndexFunc(live, func(other any) bool {
				fields, _ := other.(map[string]any)
				return fields["name"] == name
			})
			if i < 0 {
				return nil, false
			}

			return live[i], true
		}
	case string:
		if matching := matches(item, live); len(matching) == 1 {
			return matching[0], true
		} else if len(matching) > 1 && len(live) != length {
			return nil, false
		}
	}

	if len(live) != length {
		return nil, false
	}

	return live[index], true
}

// matches returns the distinct texts of a live list that the text of a template can have become.
func matches(marked string, live []any) []any {
	var found []any

	pattern := newPattern(marked)

	for _, item := range live {
		text, isText := item.(string)
		if isText && pattern.matches(text) && !slices.Contains(found, item) {
			found = append(found, item)
		}
	}

	return found
}

// text compares a text. One that is nothing but a variable may have become any type.
func (w *walk) text(marked string, plain, live any, at path) {
	if !hasMark(marked) {
		return
	}

	if index, whole := wholeMark(marked); whole {
		w.found(index, textOf(live), !same(plain, live), site{w.index, at, marked, live})
		return
	}

	pattern := newPattern(marked)

	values, problem := pattern.values(textOf(live))
	if problem != "" {
		w.missing(marked, fmt.Sprintf("%s: %s %s", w.name, at, problem))
		return
	}

	defaults, _ := pattern.values(textOf(plain))

	for index, value := range values {
		standard, known := defaults[index]
		w.found(index, value, !known || standard != value, site{w.index, at, marked, live})
	}
}

func (w *walk) found(index int, value string, changed bool, at site) {
	f := w.of(index)
	f.values[value] = true
	f.sites = append(f.sites, at)
	f.changed = f.changed || changed
}

// missing notes why the variables in a part of the template are not shown.
func (w *walk) missing(marked any, problem string) {
	for _, index := range marksIn(marked) {
		w.of(index).problem = problem
	}
}

// same reports whether a field has its default. The API server drops empty values.
func same(plain, live any) bool {
	return textOf(plain) == textOf(live) || reflect.DeepEqual(plain, live)
}

// textOf returns a value as it is written in YAML: text as it is, everything else as JSON, and nothing for a
// field that does not exist.
func textOf(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return value
	}

	data, err := json.Marshal(value)
	if err != nil {
		return ""
	}

	return string(data)
}

// inForm returns the content of a live object in the form of the template, which may have the values of
// a Secret as text.
func inForm(live, marked *unstructured.Unstructured) map[string]any {
	texts, found, _ := unstructured.NestedMap(marked.Object, "stringData")
	if !found || live.GetKind() != "Secret" {
		return live.Object
	}

	decoded := map[string]any{}

	for key := range texts {
		encoded, _, _ := unstructured.NestedString(live.Object, "data", key)

		if data, err := base64.StdEncoding.DecodeString(encoded); err == nil {
			decoded[key] = string(data)
		}
	}

	content := live.DeepCopy().Object
	content["stringData"] = decoded

	return content
}
