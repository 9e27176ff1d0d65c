package bundle

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen/expr"
	"github.com/capstan-project/capstan/chartgen/limit"
)

// valueError means that values of variables change more of a document than the fields that contain them. It contains no
// values.
type valueError struct {
	// Variables are the names of those variables, sorted.
	Variables []string
}

// manyVariables is how many variables a message names, and how many are tried alone.
const manyVariables = 20

func (e *valueError) Error() string {
	subject := "the value of variable %s changes more than the field that contains it"
	if len(e.Variables) > 1 {
		subject = "the values of variables %s change more than the fields that contain them"
	}

	return fmt.Sprintf(subject+"; remove line breaks from it, or put the expression in quotes", e.names())
}

func (e *valueError) names() string {
	if len(e.Variables) > manyVariables {
		return strings.Join(e.Variables[:manyVariables], ", ") + ", …"
	}

	return strings.Join(e.Variables, ", ")
}

// Scalar is a scalar of a document that contains expressions, or a comment that does. With values of variables its text
// is read alone, and replaced by its JSON in the document. So it remains one key, one value or a comment. The template
// capstan.read applies the same rule.
type Scalar struct {
	// Written is its text with its quotes, anchor and tag.
	Written string `json:"written"`
	// Frame is a format for a document with the text in a place of the same kind, with the same indentation. Its arguments
	// are a key that the text cannot contain, and the text. Such a key follows the text, to show that it has ended.
	Frame string `json:"frame"`
	// Expressions are those in the text, by how they are written.
	Expressions map[string]expr.Expression `json:"expressions,omitempty"`
	// Anchor is the name by which aliases refer to it.
	Anchor string `json:"anchor,omitempty"`
	// Constant is what it is with any values: # for a comment, and JSON if only its tag or the name of its anchor contain
	// expressions.
	Constant string `json:"constant,omitempty"`
	// Field is set if it must be a text: the command, an argument, or a variable of a container.
	Field string `json:"field,omitempty"`
	// Map is the number of the map whose key it is. The first key of a map has the JSON of those without expressions.
	Map  int      `json:"map,omitempty"`
	Keys []string `json:"keys,omitempty"`

	start int // in the document, in bytes
	text  *expr.Text
}

// Frames of a value, an item and a key in a flow, of the same in a block, and of a comment. In a block, @ is the
// indentation, § that of a value below its key, and %s a line break unless the text ends with one.
const (
	flowValue = "{%[1]s: %[2]s, %[1]s0:\n}\n"
	flowItem  = "{%[1]s: [%[2]s, %[1]s0\n]}\n"
	flowKey   = "{%[2]s: %[1]s, %[1]s0:\n}\n"

	blockValue      = "@%%[1]s: %%[2]s%s@%%[1]s0:\n"
	blockValueBelow = "@%%[1]s:\n§%%[2]s%s@%%[1]s0:\n"
	blockItem       = "%%[1]s:\n@- %%[2]s%s@- %%[1]s0\n"
	blockKey        = "@%%[2]s: %%[1]s%s@%%[1]s0:\n"

	inComment = "%[2]s\n%[1]s0:\n"
)

// comment replaces a comment.
const comment = "#"

// read returns the JSON of the scalar whose text has become the given one, or comment. It is empty if the text is
// something else than one key, one value or comments. The error is a *limit.Error.
func (s *Scalar) read(text string, budget *limit.Budget) (string, error) {
	key := fmt.Sprintf("k%x", sha256.Sum256([]byte(text)))
	framed := strings.ReplaceAll(fmt.Sprintf(s.Frame, key, text), "\r\n", "\n")

	if err := budget.Document(framed); err != nil {
		return "", err
	}

	// clusterctl begins another document at each line with a separator, in quotes, too.
	if strings.HasPrefix(framed, "---") || strings.Contains(framed, "\n---") {
		return "", nil
	}

	found, err := decode(framed, yaml.YAMLToJSON)
	if err != nil {
		return "", nil //nolint:nilerr // the text is no YAML
	}

	node := s.unframe(found, key)
	if s.Map > 0 && node == `"<<"` || (s.Constant != "" || node == comment) && node != s.Constant {
		return "", nil
	}

	return node, nil
}

// unframe returns the JSON of the only key or value in a frame, or comment; it is empty if there are others.
func (s *Scalar) unframe(found map[string]any, key string) string {
	end := key + "0"

	if _, isMap := found[end]; !isMap {
		list, _ := found[key].([]any)
		if len(found) != 1 || len(list) != 2 || list[1] != end {
			return ""
		}

		return toText(list[0])
	}

	delete(found, end)

	if len(found) > 1 {
		return ""
	}

	for name, value := range found {
		switch {
		case name == key && s.Map == 0:
			return toText(value)
		case value == key && s.Map > 0:
			return toText(name)
		}

		return ""
	}

	return comment
}

// toText returns decoded JSON as text.
func toText(value any) string {
	data, _ := json.Marshal(value) // cannot fail

	return string(data)
}

// write returns the document with the JSON of each scalar. The error is a *valueError, or a *limit.Error.
func (d *Document) write(values map[string]string) (string, error) {
	var b strings.Builder

	at := 0
	budget := limit.NewFile()
	keys := map[string]bool{}
	invalid := &valueError{}

	for i := range d.Scalars {
		s := &d.Scalars[i]

		node, err := s.read(s.text.Replace(values), budget)
		if err != nil {
			return "", err
		}

		if node == "" || s.Map > 0 && !s.addTo(keys, node) {
			invalid.Variables = append(invalid.Variables, s.causes(values)...)
		}

		b.WriteString(d.Source[at:s.start])

		if s.Anchor != "" {
			b.WriteString("&" + s.Anchor + " ")
		}

		b.WriteString(node)

		if strings.HasSuffix(s.Written, "\n") { // the last line of a block
			b.WriteString("\n")
		}

		at = s.start + len(s.Written)
	}

	if invalid.Variables != nil {
		slices.Sort(invalid.Variables)
		invalid.Variables = slices.Compact(invalid.Variables)

		return "", invalid
	}

	b.WriteString(d.Source[at:])

	return b.String(), nil
}

// addTo adds a key to those of all maps, after the others of its map. It reports whether its map did not have it.
func (s *Scalar) addTo(keys map[string]bool, node string) bool {
	for _, other := range s.Keys {
		keys[fmt.Sprint(s.Map, other)] = true
	}

	key := fmt.Sprint(s.Map, node)
	exists := keys[key]
	keys[key] = true

	return !exists
}

// causes returns each variable whose value alone makes something else of the scalar, or all of its variables. If one is
// used in the default of others that have no value, they have none here either.
func (s *Scalar) causes(values map[string]string) []string {
	variables := s.text.Variables()
	all := make([]string, 0, len(variables))
	others := map[string]string{}

	for _, v := range variables {
		all = append(all, v.Name)

		if !v.IsDerived() || values[v.Name] != "" {
			others[v.Name] = Placeholder
		}
	}

	var found []string

	for _, name := range all[:min(len(all), manyVariables)] {
		alone := maps.Clone(others)
		alone[name] = values[name]

		if node, err := s.read(s.text.Replace(alone), limit.NewFile()); node == "" || err != nil {
			found = append(found, name)
		}
	}

	if found == nil {
		return all
	}

	return found
}
