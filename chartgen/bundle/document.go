package bundle

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
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
	// Scalars are the scalars and comments with expressions, in the order of the document. Those of a CRD are found once
	// they are needed.
	Scalars []Scalar

	// root has the nodes of the document, if it has expressions.
	root *yamlv3.Node
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
// required variables must be set. It fails if values change more than the fields that contain them; the error wraps a
// *limit.Error if they are too large.
func (d *Document) Decode(values map[string]string, budget *limit.Budget) (map[string]any, error) {
	if !d.Text.HasExpressions() {
		return runtime.DeepCopyJSON(d.Object.Object), budget.Document(d.Source)
	}

	content, err := d.decode(values, budget)

	if exceeded := (*limit.Error)(nil); errors.As(err, &exceeded) {
		return nil, fmt.Errorf("with the values of its variables, it %w; shorten them", exceeded)
	}

	return content, err
}

func (d *Document) decode(values map[string]string, budget *limit.Budget) (map[string]any, error) {
	size, err := d.Text.Size(values)
	if err != nil {
		return nil, err
	}

	if err := budget.Take(limit.Cost{Size: size}); err != nil {
		return nil, err
	}

	if err := d.locate(); err != nil {
		return nil, err
	}

	text, err := d.write(values)
	if err != nil {
		return nil, err
	}

	cost, err := limit.Document(text)
	if err != nil {
		return nil, err
	}

	if err := budget.Take(limit.Cost{Size: max(cost.Size-size, 0), Values: cost.Values}); err != nil {
		return nil, err
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

// lineBreaks replaces all line breaks of YAML with line feeds.
var lineBreaks = strings.NewReplacer("\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// documentEnd matches what ends a document.
var documentEnd = regexp.MustCompile(`(?m)^(---|\.\.\.)`)

// endsEarly reports whether the text of one document contains the end of a document. Parsers ignore what follows.
func endsEarly(text string) bool {
	mayEnd := strings.Contains(text, "---") || strings.Contains(text, "...")

	return mayEnd && documentEnd.MatchString(lineBreaks.Replace(text))
}

// markPrefix begins the marks in the place of scalars with expressions.
const markPrefix = "capstan0mark0"

// IsMarked reports whether a text in a marked document contains expressions.
func IsMarked(text string) bool { return strings.HasPrefix(text, markPrefix) }

// Marked returns the content of the document with a mark in place of each scalar with expressions. It is nil without
// expressions.
func (d *Document) Marked() map[string]any {
	var marked map[string]any

	if d.root != nil {
		_ = d.root.Decode(&marked) // what is no value for this decoder has no mark
	}

	return marked
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
