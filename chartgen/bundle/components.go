package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/chartgen/expr"
	"github.com/capstan-project/capstan/chartgen/limit"
)

// Components is a parsed components file.
type Components struct {
	// Documents are the objects in the order of the file, without empty documents.
	Documents []Document
	// Namespace is the name of the Namespace object, which is the provider's default namespace. It
	// is empty if there is no such object.
	Namespace string
	// Variables are the variables of all documents, sorted by name.
	Variables []expr.Variable
}

// ErrNoObject is the cause of the error for a file without objects.
var ErrNoObject = errors.New("no object")

// ParseComponents parses a components file. It splits the file into documents before it substitutes
// any variable, so the value of a variable can never add an object. It rejects a file that exceeds
// the limits of the package limit before it parses it. Errors are of type *InvalidError.
func ParseComponents(data []byte) (*Components, error) {
	c, err := parseFile(data, expr.Parse)
	if err != nil {
		return nil, err
	}

	for i := range c.Documents {
		if err := c.Documents[i].Text.Check(); err != nil {
			return nil, expressionError(err)
		}
	}

	return c, nil
}

// loneExpression matches lines with nothing but an expression. Its value may be any number of lines, or none.
var loneExpression = regexp.MustCompile(`(?m)^[ \t]*\$\{[^}\n]*\}+[ \t]*$`)

// ParseTemplate parses a cluster template, with expressions of any form. If it is not valid, expressions that are alone
// on their line are left out: it may be valid with their values. The error is an *InvalidError.
func ParseTemplate(data []byte) (*Components, error) {
	parsed, err := parseFile(data, expr.ParseTemplate)
	if err == nil {
		return parsed, nil
	}

	return parseFile(loneExpression.ReplaceAll(data, nil), expr.ParseTemplate)
}

// parseFile parses a file of objects.
func parseFile(data []byte, parse func(string) (*expr.Text, error)) (*Components, error) {
	if len(data) > limit.MaxText {
		return nil, &InvalidError{File: ComponentsFile, Reason: fmt.Sprintf(
			"larger than %d MiB; publish the provider's components only", limit.MaxText>>20)}
	}

	for _, mark := range []string{"\xff\xfe", "\xfe\xff"} {
		if bytes.HasPrefix(data, []byte(mark)) {
			return nil, &InvalidError{File: ComponentsFile, Reason: "encoded in UTF-16; publish it in UTF-8"}
		}
	}

	data = bytes.TrimPrefix(data, []byte("\ufeff"))

	parts, err := split(data)
	if err != nil {
		return nil, err
	}

	source := string(data)

	text, err := parse(source)
	if err != nil {
		return nil, expressionError(err)
	}

	c := &Components{Variables: text.Variables()}
	budget := limit.NewFile()

	for _, p := range parts {
		p.end = p.start + contentEnd(data[p.start:p.end])
		p.source = source[p.start:p.end]

		if p.text, err = text.Slice(p.start, p.end, p.line); err != nil {
			return nil, expressionError(err)
		}

		if err := c.add(p, budget); err != nil {
			return nil, err
		}
	}

	if len(c.Documents) == 0 {
		return nil, &InvalidError{
			File: ComponentsFile, Reason: "contains no object; publish the provider's components YAML", Err: ErrNoObject,
		}
	}

	return c, nil
}

// add parses a document and appends it, unless it is empty. All documents together have a budget.
func (c *Components) add(p part, budget *limit.Budget) error {
	doc, err := p.document(budget)
	if doc == nil || err != nil {
		return err
	}

	if doc.IsNamespace() {
		name := doc.Object.GetName()
		if c.Namespace != "" {
			return p.invalid(fmt.Sprintf(
				"a second Namespace, %s in addition to %s; remove one, since a provider has at most one", name, c.Namespace), nil)
		}

		c.Namespace = name
	}

	c.Documents = append(c.Documents, *doc)

	return nil
}

// part is one document of the file, before it is parsed.
type part struct {
	start, end int // byte offsets in the file
	line       int // of the file, starting at 1
	source     string
	text       *expr.Text
}

// yamlLine matches the line number at the beginning of a YAML library's message.
var yamlLine = regexp.MustCompile(`^line (\d+): `)

// invalid returns the error for a part.
func (p part) invalid(reason string, err error) error {
	return &InvalidError{File: ComponentsFile, Line: p.line, Reason: reason, Err: err}
}

// invalidYAML returns the error for a part that is not valid YAML. Its line counts from the
// beginning of the file, not of the part.
func (p part) invalidYAML(err error) error {
	reason := YAMLReason(err)
	line := p.line

	if m := yamlLine.FindStringSubmatch(reason); m != nil {
		n, _ := strconv.Atoi(m[1])
		line += n - 1
		reason = strings.TrimPrefix(reason, m[0])
	}

	return &InvalidError{File: ComponentsFile, Line: line, Reason: "not valid YAML: " + reason, Err: err}
}

// split finds the documents. It applies the same rule as the YAML reader of apimachinery, which
// clusterctl uses.
func split(data []byte) ([]part, error) {
	var parts []part

	line := 1
	current := part{line: line}

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
					Reason: "text after the document separator ---; begin the document on the next line",
				}
			}

			if len(parts) == limit.MaxDocuments {
				return nil, current.invalid(fmt.Sprintf("more than %d documents", limit.MaxDocuments), nil)
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

// endMarker matches a line that ends a document of YAML.
var endMarker = regexp.MustCompile(`^\.\.\.\s*(\s#.*)?$`)

// contentEnd returns where the content of a document ends: before its end marker, unless content follows it, which
// parsers would ignore.
func contentEnd(document []byte) int {
	content := len(document)

	for end := len(document); end > 0; {
		start := bytes.LastIndexByte(document[:end-1], '\n') + 1
		line := bytes.TrimRight(document[start:end], "\r\n")
		text := bytes.TrimSpace(line)

		if endMarker.Match(line) {
			content = start
		} else if len(text) > 0 && text[0] != '#' {
			break
		}

		end = start
	}

	return content
}

// document parses the part. It returns nil if the part is empty.
func (p part) document(budget *limit.Budget) (*Document, error) {
	expanded, err := p.text.Expand(placeholders(p.text))
	if err != nil {
		return nil, p.invalid(err.Error(), err)
	}

	if err := budget.Document(expanded); err != nil {
		return nil, p.invalid(fmt.Sprintf("the document %v", err), err)
	}

	if endsEarly(expanded) {
		return nil, p.invalid("text follows the end of the document; remove it", nil)
	}

	content, err := decode(expanded, toJSONStrict)
	if errors.Is(err, errNoObject) {
		return nil, p.invalid(err.Error(), err)
	}

	if err != nil {
		return nil, p.invalidYAML(err)
	}

	if content == nil {
		return nil, nil
	}

	doc := &Document{
		Line: p.line, Source: p.source, Text: p.text, Object: &unstructured.Unstructured{Object: content},
	}

	if err := p.checkObject(doc.Object); err != nil {
		return nil, err
	}

	return doc, p.checkDefaults(doc)
}

// checkDefaults returns an error if the defaults of variables change more of an object than the fields that contain
// them: its chart could not be rendered. CRDs are not rendered with other values.
func (p part) checkDefaults(doc *Document) error {
	if doc.IsCRD() {
		return nil
	}

	err := doc.locate()
	if err == nil {
		_, err = doc.write(placeholders(doc.Text))
	}

	if err == nil {
		return nil
	}

	invalid := (*valueError)(nil)
	if !errors.As(err, &invalid) {
		return p.invalid(fmt.Sprintf("%s: %v", doc, err), err)
	}

	return p.invalid(fmt.Sprintf("%s: an expression of %s is neither a value, nor a key, nor a part of one; "+
		"use it as one only", doc, invalid.names()), invalid)
}

// checkObject returns an error unless the content of the part is an object.
func (p part) checkObject(object *unstructured.Unstructured) error {
	if err := limit.Depth(object.Object); err != nil {
		return p.invalid(fmt.Sprintf("the document %v", err), err)
	}

	if object.GetAPIVersion() == "" || object.GetKind() == "" {
		return p.invalid("an object without apiVersion or kind; is this a provider's components YAML?", nil)
	}

	if object.GetName() == "" && strings.HasSuffix(object.GetKind(), "List") {
		return p.invalid(fmt.Sprintf(
			"a %s without metadata.name; write each of its items as a document of its own", object.GetKind()), nil)
	}

	if object.GetName() == "" {
		return p.invalid(fmt.Sprintf("a %s without metadata.name", object.GetKind()), nil)
	}

	return nil
}

// expressionError converts the error of an expression, which has the line in the file.
func expressionError(err error) error {
	var syntax *expr.SyntaxError
	if errors.As(err, &syntax) {
		return &InvalidError{
			File:   ComponentsFile,
			Line:   syntax.Line,
			Reason: syntax.Reason(),
			Err:    err,
		}
	}

	return &InvalidError{File: ComponentsFile, Reason: err.Error(), Err: err}
}
