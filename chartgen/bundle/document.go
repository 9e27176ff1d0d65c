package bundle

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen/expr"
	"github.com/capstan-project/capstan/chartgen/limit"
)

// Placeholder is the value of required variables while a document is parsed. It is a valid name,
// label value, and base64 text.
const Placeholder = "placeholder0"

// Document is one object of a components file.
type Document struct {
	// Line is the line of the file on which the document begins, starting at 1.
	Line int
	// Source is the document as written.
	Source string
	// Text is the source with its expressions parsed.
	Text *expr.Text
	// Object is the document with the default of each variable, and Placeholder for each required
	// one. Use it only for what does not depend on variables.
	Object *unstructured.Unstructured

	// marked is what Marked returns, once it was asked for.
	marked map[string]any
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

// String returns the kind and the name of the object.
func (d *Document) String() string {
	return d.Object.GetKind() + " " + d.Object.GetName()
}

// Decode returns the content of the document with these values of variables, and takes its cost from a budget. All
// required variables must be set. The error is a *ValueError if values change more than the fields that contain them,
// and wraps a *limit.Error if they are too large.
func (d *Document) Decode(values map[string]string, budget *limit.Budget) (map[string]any, error) {
	content, err := d.expand(values, budget)

	exceeded := (*limit.Error)(nil)
	if errors.As(err, &exceeded) {
		return nil, fmt.Errorf("with the values of its variables, it %w; shorten them", exceeded)
	}

	missing := (*expr.MissingError)(nil)
	if errors.As(err, &missing) {
		return nil, err
	}

	if invalid := d.checkValues(content, values); invalid != nil {
		return nil, invalid
	}

	return content, err
}

// expand is Decode without a check of what the values change.
func (d *Document) expand(values map[string]string, budget *limit.Budget) (map[string]any, error) {
	if len(d.Text.Expressions()) == 0 {
		return runtime.DeepCopyJSON(d.Object.Object), budget.Document(d.Source)
	}

	text, err := d.Text.Expand(values)
	if err != nil {
		return nil, err
	}

	return parse(text, budget)
}

// parse returns the content of a document with values of variables, or nil if it contains only comments.
func parse(text string, budget *limit.Budget) (map[string]any, error) {
	if err := budget.Document(text); err != nil {
		return nil, err
	}

	if endsEarly(text) {
		return nil, errEndsEarly
	}

	return decode(text, toJSON)
}

// toJSON and toJSONStrict convert YAML, the latter without keys that a map has twice. Tests count what is decoded.
var toJSON, toJSONStrict = yaml.YAMLToJSON, yaml.YAMLToJSONStrict

// errNoObject is the error for a document that is a list or a scalar.
var errNoObject = errors.New("not an object with apiVersion and kind")

// decode parses a document like clusterctl: all lines, the last one too, end with a line feed. Integers become int64.
// It returns nil if there are only comments.
func decode(text string, convert func([]byte) ([]byte, error)) (map[string]any, error) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}

	data, err := convert([]byte(text))
	if err != nil {
		return nil, err
	}

	var content any
	if err := utiljson.Unmarshal(data, &content); err != nil {
		return nil, err
	}

	object, isObject := content.(map[string]any)
	if content != nil && !isObject {
		return nil, errNoObject
	}

	return object, nil
}

// errEndsEarly is the error for text that parsers ignore.
var errEndsEarly = errors.New("text follows the end of the document")

// lineBreaks replaces all line breaks of YAML with line feeds.
var lineBreaks = strings.NewReplacer("\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// documentEnd matches what ends a document.
var documentEnd = regexp.MustCompile(`(?m)^(---|\.\.\.)`)

// endsEarly reports whether the text of one document contains the end of a document. Values of variables can do that.
// Parsers ignore what follows, or take it for another document. The template capstan.parse applies the same rule.
func endsEarly(text string) bool {
	mayEnd := strings.Contains(text, "---") || strings.Contains(text, "...")

	return mayEnd && documentEnd.MatchString(lineBreaks.Replace(text))
}

// Marked returns the content of the document with a mark in place of each expression, see expr.IsMarked. It is nil
// without expressions, and if the document with marks is no object. It must not be changed.
func (d *Document) Marked() map[string]any {
	if d.marked == nil && len(d.Text.Expressions()) > 0 {
		d.marked, _ = parse(d.Text.Marked(), limit.NewFile())
	}

	return d.marked
}

// placeholders returns Placeholder for each required variable of the text. All other variables have
// a default.
func placeholders(text *expr.Text) map[string]string {
	values := map[string]string{}

	for _, v := range text.Variables() {
		if v.Required {
			values[v.Name] = Placeholder
		}
	}

	return values
}
