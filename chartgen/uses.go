package chartgen

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen/bundle"
)

// Marks stand in for variables while it is found out where these are used. A mark is plain text to
// YAML wherever it stands.
const (
	markBegin = "capstan0var0"
	markEnd   = "0var0capstan"
)

var mark = regexp.MustCompile(markBegin + `(\w+?)` + markEnd)

// variableUses says of each variable which fields of which objects, other than CRDs, it goes into,
// such as "Deployment x: container manager, flag --v". Where that cannot be told, because an
// expression changes its variable or the text is YAML only with some values, it says the lines of
// the components.
func variableUses(components *bundle.Components) map[string][]string {
	uses := map[string][]string{}

	for i := range components.Documents {
		doc := &components.Documents[i]

		variables := doc.Text.Variables()
		if len(variables) == 0 || doc.IsCRD() {
			continue
		}

		marked := markedPlaces(doc)
		for _, v := range variables {
			places := marked[v.Name]
			if len(places) == 0 {
				places = []string{lines(v.Lines)}
			}

			uses[v.Name] = append(uses[v.Name], fmt.Sprintf("%s: %s", doc, strings.Join(places, "; ")))
		}
	}

	return uses
}

// markedPlaces finds each variable's places in an object.
func markedPlaces(doc *bundle.Document) map[string][]string {
	marks := map[string]string{}
	for _, v := range doc.Text.Variables() {
		marks[v.Name] = markBegin + v.Name + markEnd
	}

	var object map[string]any

	text, err := doc.Text.Expand(marks)
	if err != nil || yaml.Unmarshal([]byte(text), &object) != nil {
		return nil
	}

	found := places{}
	found.walk("", object)

	return found
}

// places are the fields in which marks were found, by variable.
type places map[string][]string

func (p places) walk(path string, node any) {
	switch node := node.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(node)) {
			p.add(strings.TrimPrefix(path, "."), key)
			p.walk(path+"."+key, node[key])
		}
	case []any:
		for i, item := range node {
			p.walk(path+element(i, item), item)
		}
	case string:
		p.add(place(path, node), node)
	}
}

// add notes the place for each variable whose mark is in the text.
func (p places) add(place, text string) {
	for _, m := range mark.FindAllStringSubmatch(text, -1) {
		if name := m[1]; !slices.Contains(p[name], place) {
			p[name] = append(p[name], place)
		}
	}
}

// element is an element of a list in a path: by its name if it has one.
func element(i int, item any) string {
	if object, ok := item.(map[string]any); ok && object["name"] != nil {
		return fmt.Sprintf("[%v]", object["name"])
	}

	return fmt.Sprintf("[%d]", i)
}

var (
	inContainer = regexp.MustCompile(`^\.spec\.template\.spec\.(?:initContainers|containers)\[([^]]*)\]\.(.*)$`)
	anArgument  = regexp.MustCompile(`^(?:args|command)\[\d+\]$`)
	aFlag       = regexp.MustCompile(`^--?[\w.-]+`)
)

// place is a field for people: of a container by the container's name, and an argument by its flag.
func place(path, value string) string {
	m := inContainer.FindStringSubmatch(path)
	if m == nil {
		return strings.TrimPrefix(path, ".")
	}

	field := m[2]
	if flag := aFlag.FindString(value); flag != "" && anArgument.MatchString(field) {
		field = "flag " + flag
	}

	return fmt.Sprintf("container %s, %s", m[1], field)
}

func lines(numbers []int) string {
	text := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(numbers)), ", "), "[]")
	if len(numbers) == 1 {
		return "line " + text
	}

	return "lines " + text
}
