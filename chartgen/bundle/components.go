package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen/expr"
)

// Placeholder stands in for required variables while a document is read. It is a valid name, label
// value and base64 text.
const Placeholder = "placeholder0"

// Components is a components file taken apart.
type Components struct {
	// Documents are the objects in the file's order; empty documents are left out.
	Documents []Document
	// Namespace is the name of the Namespace object, the provider's default namespace; empty when
	// there is none.
	Namespace string
	// Variables of all documents, sorted by name.
	Variables []expr.Variable
}

// Document is one object of a components file.
type Document struct {
	// Line is the line of the file on which the document begins, from 1.
	Line int
	// Text is the document as written, its expressions parsed.
	Text *expr.Text
	// Object is the document with its variables' defaults put in and a placeholder for each
	// required one: good for what does not depend on variables.
	Object *unstructured.Unstructured
}

// IsCRD reports whether the document is a CustomResourceDefinition.
func (d *Document) IsCRD() bool {
	gvk := d.Object.GroupVersionKind()
	return gvk.Kind == "CustomResourceDefinition" && gvk.Group == "apiextensions.k8s.io"
}

// IsNamespace reports whether the document is a Namespace.
func (d *Document) IsNamespace() bool {
	gvk := d.Object.GroupVersionKind()
	return gvk.Kind == "Namespace" && gvk.Group == ""
}

// String names the object for people: kind and name.
func (d *Document) String() string {
	return d.Object.GetKind() + " " + d.Object.GetName()
}

// ParseComponents takes a components file apart. Documents are told apart in the text as it was
// published, before anything is substituted, so no variable's value can ever add an object. Its
// error is an *InvalidError.
func ParseComponents(data []byte) (*Components, error) {
	return parseComponents(data, nil)
}

// parseComponents reads of each document what outline leaves of its text; nil leaves all. Text that
// cannot be read then is read whole, so that outline may be wrong, and an error is on the right
// line.
func parseComponents(data []byte, outline func(string) string) (*Components, error) {
	text, err := expr.Parse(string(data))
	if err != nil {
		return nil, expressionError(err)
	}

	parts, err := split(data)
	if err != nil {
		return nil, err
	}

	c := &Components{Variables: text.Variables()}
	for _, p := range parts {
		if p.text, err = text.Slice(p.start, p.end); err != nil {
			return nil, expressionError(err)
		}

		if err := c.add(p, outline); err != nil {
			return nil, err
		}
	}

	if len(c.Documents) == 0 {
		return nil, &InvalidError{File: ComponentsFile, Reason: "holds no object; publish the provider's components YAML"}
	}

	return c, nil
}

// add reads one document and adds it, unless it is empty.
func (c *Components) add(p part, outline func(string) string) error {
	doc, err := p.document(outline)
	if doc == nil || err != nil {
		return err
	}

	if doc.IsNamespace() {
		if c.Namespace != "" {
			return p.invalid(
				fmt.Sprintf(
					"a second Namespace, %s beside %s; a provider may bring one at most",
					doc.Object.GetName(),
					c.Namespace,
				),
				nil,
			)
		}

		c.Namespace = doc.Object.GetName()
	}

	c.Documents = append(c.Documents, *doc)

	return nil
}

// part is one document of the file: where it begins and ends, and its text.
type part struct {
	start, end int
	line       int
	text       *expr.Text
}

// yamlLine finds the line that a YAML library names at the start of its message.
var yamlLine = regexp.MustCompile(`^line (\d+): `)

// invalid makes the error of a part.
func (p part) invalid(reason string, err error) error {
	return &InvalidError{File: ComponentsFile, Line: p.line, Reason: reason, Err: err}
}

// invalidYAML makes the error of a part that is not YAML, on the file's line rather than the
// part's.
func (p part) invalidYAML(err error) error {
	reason, line := yamlReason(err), p.line
	if m := yamlLine.FindStringSubmatch(reason); m != nil {
		n, _ := strconv.Atoi(m[1])
		line += n - 1
		reason = strings.TrimPrefix(reason, m[0])
	}

	return &InvalidError{File: ComponentsFile, Line: line, Reason: "not valid YAML: " + reason, Err: err}
}

// split finds the documents, by the rule of the API machinery's YAML reader, which clusterctl uses.
func split(data []byte) ([]part, error) {
	var parts []part

	current := part{line: 1}

	line := 1
	for pos := 0; pos < len(data); line++ {
		end := len(data)
		if i := bytes.IndexByte(data[pos:], '\n'); i >= 0 {
			end = pos + i + 1
		}

		if rest, ok := bytes.CutPrefix(data[pos:end], []byte("---")); ok {
			if rest = bytes.TrimSpace(rest); len(rest) > 0 && rest[0] != '#' {
				return nil, &InvalidError{
					File:   ComponentsFile,
					Line:   line,
					Reason: "text after the document separator ---; begin the document on a line of its own",
				}
			}

			current.end = pos
			parts = append(parts, current)
			current = part{start: end, line: line + 1}
		}

		pos = end
	}

	current.end = len(data)

	return append(parts, current), nil
}

// document reads the part; nil when it is empty.
func (p part) document(outline func(string) string) (*Document, error) {
	expanded, err := p.text.Expand(placeholders(p.text))
	if err != nil {
		return nil, p.invalid(err.Error(), err)
	}

	content, err := decode(expanded, outline)
	if err != nil {
		return nil, p.invalidYAML(err)
	}

	if content == nil {
		return nil, nil
	}

	object := &unstructured.Unstructured{Object: content}
	if object.GetAPIVersion() == "" || object.GetKind() == "" {
		return nil, p.invalid("an object without apiVersion or kind; is this a provider's components YAML?", nil)
	}

	if object.GetName() == "" {
		return nil, p.invalid(fmt.Sprintf("a %s without metadata.name", object.GetKind()), nil)
	}

	return &Document{Line: p.line, Text: p.text, Object: object}, nil
}

// decode reads a YAML mapping; nil when there is none.
func decode(text string, outline func(string) string) (content map[string]any, err error) {
	if outline != nil && yaml.Unmarshal([]byte(outline(text)), &content) == nil {
		return content, nil
	}

	content = nil
	err = yaml.Unmarshal([]byte(text), &content)

	return content, err
}

// expressionError is the error of an expression, which knows its line in the file.
func expressionError(err error) error {
	var syntax *expr.SyntaxError
	if errors.As(err, &syntax) {
		return &InvalidError{
			File:   ComponentsFile,
			Line:   syntax.Line,
			Reason: fmt.Sprintf("expression %s: %v", syntax.Expression, syntax.Err),
			Err:    err,
		}
	}

	return &InvalidError{File: ComponentsFile, Reason: err.Error(), Err: err}
}

// placeholders gives each required variable of the text the placeholder; the others keep their own
// defaults.
func placeholders(text *expr.Text) map[string]string {
	values := map[string]string{}

	for _, v := range text.Variables() {
		if v.Required {
			values[v.Name] = Placeholder
		}
	}

	return values
}
