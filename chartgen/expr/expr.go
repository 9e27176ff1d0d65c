// Package expr turns text with envsubst expressions, as Cluster API providers
// publish it, into the text of a Helm template that keeps the variables open:
// ${NAME:=word} becomes {{ $var.NAME | default "word" }}.
//
// The measure is clusterctl: what Helm renders from [Text.Template] with the
// values {variables: {NAME: value}} is, byte for byte, what clusterctl's
// processor makes of the same text and the same variables, bugs of
// drone/envsubst included, and Helm fails where clusterctl does. The grammar is
// that of drone/envsubst's own parser; this package only finds where an
// expression ends.
//
// A variable that is unset or null is missing, as an environment variable that
// does not exist; "" is set but empty, which satisfies a required variable and
// still yields to a default. Numbers print without an exponent (1000000), other
// values that are not text as JSON (true).
//
// Not supported, and reported by [Parse] as [ErrUnsupported]:
//   - a nested expression as the pattern of #, ##, % or %%, such as
//     ${A%${B}}: a glob cannot be compiled before its text is known;
//   - U+FFFD or bytes that are not UTF-8 in such a pattern together with
//     *, ? or [...];
//   - an expression longer than 16 KiB.
//
// Two things Helm does not let through: a variable's value that is not UTF-8
// fails the rendering (it could never become YAML), and the words "<no value>"
// are deleted by Helm where a variable's value, or part of it, forms them.
package expr

import (
	_ "embed" // for Helpers
	"errors"
	"iter"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/drone/envsubst/v2/parse"
)

// Helpers are the named templates that [Text.Template] calls. A chart that
// holds such text ships them once, in a file of templates/ whose name begins
// with an underscore. Their names begin with "capstan.".
//
//go:embed helpers.tpl
var Helpers string

// Text is text that Parse has read, or a part of it. It does not change.
type Text struct {
	segments []segment
	required map[string]bool // by the first use in the whole text
}

// segment is a stretch of literal text or one expression.
type segment struct {
	start, end int // byte offsets in the source
	literal    string
	expression *expression // nil for literal text
}

type expression struct {
	written      string
	line, column int
	source       string // as written, without the spaces of the legacy form
	root         *parse.FuncNode
	action       string // the pipeline between {{ and }}
}

func (e *expression) syntaxError(err error) *SyntaxError {
	return &SyntaxError{Line: e.line, Column: e.column, Expression: shorten(e.written), Err: err}
}

// Variable is what a text says about one of its variables.
type Variable struct {
	Name string
	// Required is clusterctl's verdict: the first use of the variable in the
	// whole text has no default. A variable that is used only inside another's
	// expression is never required.
	Required bool
	// Defaults are the distinct defaults without an expression inside, as
	// written, in order of use. Quotes belong to them.
	Defaults []string
	// Lines are the lines, from 1, on which the variable's expressions begin.
	Lines []int
}

// Variables lists the variables of the text, sorted by name.
func (t *Text) Variables() []Variable {
	byName := map[string]*Variable{}

	for e := range t.expressions() {
		for _, fn := range functions(e.root) {
			v := byName[fn.Param]
			if v == nil {
				v = &Variable{Name: fn.Param, Required: t.required[fn.Param]}
				byName[fn.Param] = v
			}

			if !slices.Contains(v.Lines, e.line) {
				v.Lines = append(v.Lines, e.line)
			}

			if word, ok := literalDefault(fn); ok && !slices.Contains(v.Defaults, word) {
				v.Defaults = append(v.Defaults, word)
			}
		}
	}

	variables := make([]Variable, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		variables = append(variables, *byName[name])
	}

	return variables
}

var errCut = errors.New("it reaches into the next part (in YAML, the next document): close it before")

// Slice returns the part of the text between two byte offsets of the source
// that Parse read. Lines, and which variables are required, remain those of the
// whole. It fails with a *SyntaxError if an offset lies inside an expression.
func (t *Text) Slice(start, end int) (*Text, error) {
	part := &Text{required: t.required}

	first := sort.Search(len(t.segments), func(i int) bool { return t.segments[i].end > start })
	for _, s := range t.segments[first:] {
		if s.start >= end {
			break
		}

		if s.expression != nil && (s.start < start || s.end > end) {
			return nil, s.expression.syntaxError(errCut)
		}

		if s.expression == nil {
			s.literal = s.literal[max(start-s.start, 0) : min(end, s.end)-s.start]
			s.start, s.end = max(start, s.start), min(end, s.end)
		}

		part.segments = append(part.segments, s)
	}

	return part, nil
}

func (t *Text) expressions() iter.Seq[*expression] {
	return func(yield func(*expression) bool) {
		for _, s := range t.segments {
			if s.expression != nil && !yield(s.expression) {
				return
			}
		}
	}
}

// literalSize is the number of bytes of the text without its expressions.
func (t *Text) literalSize() int {
	size := 0
	for _, s := range t.segments {
		size += len(s.literal)
	}

	return size
}

// functions returns an expression and those nested in it, in order of text.
func functions(fn *parse.FuncNode) []*parse.FuncNode {
	all := []*parse.FuncNode{fn}
	for _, arg := range fn.Args {
		if nested, ok := arg.(*parse.FuncNode); ok {
			all = append(all, functions(nested)...)
		}
	}

	return all
}

// literalDefault returns the default of an expression that has one without an
// expression inside.
func literalDefault(fn *parse.FuncNode) (string, bool) {
	if !isDefault(fn.Name) || len(fn.Args) == 0 {
		return "", false
	}

	var word strings.Builder

	for _, arg := range fn.Args {
		text, ok := arg.(*parse.TextNode)
		if !ok {
			return "", false
		}

		word.WriteString(text.Value)
	}

	return word.String(), true
}
