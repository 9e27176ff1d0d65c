package chartgen

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/limit"
)

// To find out where a variable is used, its value is replaced by a mark, which is plain text to
// YAML in any position.
const (
	markBegin = "capstan0var0"
	markEnd   = "0var0capstan"
)

var mark = regexp.MustCompile(markBegin + `(\w+?)` + markEnd)

// addVariableUses adds to uses, for each variable of a document, the fields in which it is used,
// for example "Deployment x: container manager, flag --v". It adds lines of the components instead
// if the fields are unknown, because an expression changes the variable's value or because the text
// is valid YAML only with certain values.
func addVariableUses(uses map[string][]string, doc *bundle.Document) {
	variables := doc.Text.Variables()
	if len(variables) == 0 {
		return
	}

	marked := markedFields(doc)

	for _, v := range variables {
		places := marked[v.Name]
		if len(places) == 0 {
			places = []string{lines(v.Lines)}
		}

		uses[v.Name] = append(uses[v.Name], fmt.Sprintf("%s: %s", doc, strings.Join(places, "; ")))
	}
}

// markedFields returns the fields of an object in which each variable is used.
func markedFields(doc *bundle.Document) markedValues {
	marks := map[string]string{}
	for _, v := range doc.Text.Variables() {
		marks[v.Name] = markBegin + v.Name + markEnd
	}

	object, err := doc.Decode(marks)
	if err != nil || limit.Depth(object) != nil {
		return nil
	}

	found := markedValues{}
	found.walk("", object)

	return found
}

// markedValues are the fields in which marks were found, by variable.
type markedValues map[string][]string

// walk adds the fields below a node.
func (m markedValues) walk(path string, node any) {
	switch node := node.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(node)) {
			m.add(strings.TrimPrefix(path, "."), key)
			m.walk(path+"."+shorten(key), node[key])
		}
	case []any:
		for i, item := range node {
			m.walk(path+element(i, item), item)
		}
	case string:
		m.add(displayField(path, node), node)
	}
}

// add adds a field to each variable with a mark in the text.
func (m markedValues) add(field, text string) {
	for _, match := range mark.FindAllStringSubmatch(text, -1) {
		name := match[1]
		if !slices.Contains(m[name], field) {
			m[name] = append(m[name], field)
		}
	}
}

// element returns the path element of a list item: its name, if it has one, or its index.
func element(i int, item any) string {
	if object, ok := item.(map[string]any); ok && object["name"] != nil {
		return fmt.Sprintf("[%s]", shorten(fmt.Sprint(object["name"])))
	}

	return fmt.Sprintf("[%d]", i)
}

var (
	containerField = regexp.MustCompile(`^\.spec\.template\.spec\.(?:initContainers|containers)\[([^]]*)\]\.(.*)$`)
	argumentField  = regexp.MustCompile(`^(?:args|command)\[\d+\]$`)
	flagName       = regexp.MustCompile(`^--?[\w.-]+`)
)

// displayField describes a field for users: a field of a container by the container's name, and an
// argument by its flag.
func displayField(path, value string) string {
	m := containerField.FindStringSubmatch(path)
	if m == nil {
		return shorten(strings.TrimPrefix(path, "."))
	}

	container, field := m[1], m[2]

	name := flagName.FindString(value)
	if name != "" && argumentField.MatchString(field) {
		field = "flag " + name
	}

	return shorten(fmt.Sprintf("container %s, %s", container, field))
}

// shorten returns the beginning of a text that is part of a longer one.
func shorten(text string) string {
	const maxLength = 200

	if len(text) <= maxLength {
		return text
	}

	return strings.ToValidUTF8(text[:maxLength], "") + "…"
}

// lines formats line numbers, for example "line 3" or "lines 3, 5".
func lines(numbers []int) string {
	text := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(numbers)), ", "), "[]")
	if len(numbers) == 1 {
		return "line " + text
	}

	return "lines " + text
}
