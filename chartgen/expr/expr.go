// Package expr compiles text with envsubst expressions, as Cluster API providers publish it, to the
// text of a Helm template with variables: ${NAME:=word} becomes {{ $var.NAME | default "word" }}.
//
// The result is equivalent to clusterctl: with the values {variables: {NAME: value}}, Helm renders
// [Text.Template] to exactly the bytes that clusterctl's processor returns for the same text and
// variables, including the bugs of drone/envsubst. Where clusterctl fails, Helm fails. To ensure
// this, expressions are parsed by the parser of drone/envsubst; this package only finds where they
// end.
//
// A variable that is absent or null is unset, like an environment variable that does not exist. The
// empty string is a value: it satisfies a required variable, but yields to a default. Numbers are
// formatted without an exponent (1000000), and other values as JSON (true).
//
// [Parse] rejects the following with [ErrUnsupported]:
//   - a nested expression as the pattern of #, ##, %, or %%, such as ${A%${B}}: a pattern cannot be
//     compiled before its text is known;
//   - U+FFFD or invalid UTF-8 in such a pattern together with *, ?, or [...];
//   - an expression longer than 16 KiB, with more than 32 levels, or whose value would be larger than
//     4 MiB; a text with more than 10,000 expressions, with more than 1 MiB of them, or with more
//     than 100,000 "$$".
//
// Helm adds a restriction: rendering fails if the value of a variable is not valid UTF-8, which is never
// valid YAML.
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

// Helpers are the named templates that [Text.Template] calls. A chart with such templates must
// contain them once, in a file in templates/ whose name begins with an underscore. Their names
// begin with "capstan.".
//
//go:embed helpers.tpl
var Helpers string

// Text is a parsed text, or a part of one. It is immutable.
type Text struct {
	segments []segment
	required map[string]bool // determined by the first use in the whole text
}

// segment is a piece of literal text or an expression.
type segment struct {
	start, end int // byte offsets in the source
	literal    string
	expression *expression // nil for literal text
}

// expression is an outermost expression of a text.
type expression struct {
	written      string // in the text
	line, column int
	source       string // as written, but without the spaces of the legacy form
	root         *parse.FuncNode
	action       string // the template pipeline between {{ and }}
}

// Variable describes how a text uses a variable.
type Variable struct {
	Name string
	// Required reports whether clusterctl considers the variable to be required: its first use in
	// the whole text has no default. A variable that is used only inside other expressions is never
	// required.
	Required bool
	// Defaults are the distinct defaults that contain no expression, in order of use. They are as
	// written, including quotes.
	Defaults []string
	// Lines are the lines, starting at 1, on which the variable's expressions begin.
	Lines []int
}

// Variables returns the variables of the text, sorted by name.
func (t *Text) Variables() []Variable {
	byName := map[string]*Variable{}
	seen := map[[2]string]bool{} // names with defaults

	for e := range t.expressions() {
		for _, fn := range functions(e.root) {
			v := byName[fn.Param]
			if v == nil {
				v = &Variable{Name: fn.Param, Required: t.required[fn.Param]}
				byName[fn.Param] = v
			}

			if n := len(v.Lines); n == 0 || v.Lines[n-1] != e.line { // expressions are in order
				v.Lines = append(v.Lines, e.line)
			}

			word, ok := literalDefault(fn)
			if id := [2]string{fn.Param, word}; ok && !seen[id] {
				seen[id] = true

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

var errCut = errors.New("it extends into the next part (in YAML, the next document): close it before")

// Slice returns the part of the text between two byte offsets of the source that was parsed. Line
// numbers, and which variables are required, remain those of the whole text. It returns a
// *SyntaxError if an offset is inside an expression.
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
			s.start = max(start, s.start)
			s.end = min(end, s.end)
		}

		part.segments = append(part.segments, s)
	}

	return part, nil
}

// expressions iterates over the outermost expressions of the text.
func (t *Text) expressions() iter.Seq[*expression] {
	return func(yield func(*expression) bool) {
		for _, s := range t.segments {
			if s.expression != nil && !yield(s.expression) {
				return
			}
		}
	}
}

// literalSize returns the number of bytes of the text without its expressions.
func (t *Text) literalSize() int {
	size := 0
	for _, s := range t.segments {
		size += len(s.literal)
	}

	return size
}

// functions returns an expression and those nested in it, in the order of the text.
func functions(fn *parse.FuncNode) []*parse.FuncNode {
	all := []*parse.FuncNode{fn}
	for nested := range children(fn) {
		all = append(all, functions(nested)...)
	}

	return all
}

// literalDefault returns the default of an expression, if it has one that contains no expression.
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
