package lint

import (
	"errors"
	"regexp"
	"strings"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/expr"
)

// sampleCluster is the value of ${CLUSTER_NAME} while templates are checked. Names that contain it can be
// compared, unlike those that contain bundle.Placeholder, the value of other required variables.
const sampleCluster = "cluster0"

// sampleNamespace is the value of ${NAMESPACE}.
const sampleNamespace = "namespace0"

// sampleValues are the values of the common variables of cluster templates.
var sampleValues = strings.NewReplacer(
	"${CLUSTER_NAME}", sampleCluster, "${ CLUSTER_NAME }", sampleCluster,
	"${NAMESPACE}", sampleNamespace,
	"${KUBERNETES_VERSION}", "v1.34.0",
	"${CONTROL_PLANE_MACHINE_COUNT}", "3",
	"${WORKER_MACHINE_COUNT}", "3",
)

// written returns a text with ${CLUSTER_NAME} instead of its value.
func written(text string) string { return strings.ReplaceAll(text, sampleCluster, "${CLUSTER_NAME}") }

// newTemplateFile parses a cluster template with sample values for its variables. If it is not valid with
// these, expressions that are alone on their line are left out.
func newTemplateFile(t bundle.File) file {
	var parsed *bundle.Components

	f := unparsedFile(t.Name, t.Data)

	text, err := expr.ParseTemplate(string(t.Data))
	if err == nil {
		parsed, err = bundle.ParseTemplate([]byte(sampleValues.Replace(string(t.Data))))
	}

	if text == nil || errors.As(err, new(*expr.SyntaxError)) {
		// The error must have its line, and the expression without sample values.
		_, f.err = bundle.ParseTemplate(t.Data)
		return f
	}

	if f.err = err; err == nil {
		f.documents = parsed.Documents
		f.variables = text.Variables() // the sample has fewer
	}

	return f
}

// maybeValid reports whether a file that cannot be parsed may be valid with other values of its
// variables: if an expression is alone on a line of the document that is not valid.
func (f *file) maybeValid() bool {
	var invalid *bundle.InvalidError
	if !errors.As(f.err, &invalid) || errors.As(f.err, new(*expr.SyntaxError)) || invalid.Line == 0 {
		return false
	}

	first, end := f.document(invalid.Line)
	for _, line := range f.lines[first-1 : end] {
		if bundle.HasLoneExpression(line) {
			return true
		}
	}

	return false
}

// document returns the first and the last line of the document that contains a line.
func (f *file) document(line int) (first, last int) {
	isSeparator := func(n int) bool { return strings.HasPrefix(f.lines[n-1], "---") }

	for first = min(line, len(f.lines)); first > 1 && !isSeparator(first); first-- {
	}

	for last = first; last < len(f.lines) && !isSeparator(last+1); last++ {
	}

	return first, last
}

// expression matches expressions without others inside.
var expression = regexp.MustCompile(`\$\{[^${}]*\}`)

// writtenName returns a name in an object as written there, with its variables.
func writtenName(doc *bundle.Document, name string) string {
	for line := range strings.Lines(doc.Source) {
		_, value, _ := strings.Cut(line, "ame: ") // also of secretName

		if text := unquoted(value); expression.ReplaceAllString(sampleValues.Replace(text), bundle.Placeholder) == name {
			return text
		}
	}

	return written(name)
}
