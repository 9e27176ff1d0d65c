// Package expr reads the expressions in the text that Cluster API providers publish, such as ${NAME} and
// ${NAME:=default}. They are parsed by drone/envsubst, which clusterctl uses, and described by data, so that the
// template in a chart can replace them.
//
// Charts support ${NAME}, the default of a variable that is empty, ${NAME:=default}, written with =, :=, :-, :+ or :?,
// which all mean the same to drone/envsubst, and the replacement of a prefix, ${NAME/#prefix/replacement}. A default
// may contain expressions, such as ${NAME:=https://${HOST:=localhost}}. [Parse] refuses all others, and whatever
// clusterctl would read in another way.
package expr

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/drone/envsubst/v2"
	"github.com/drone/envsubst/v2/parse"

	"github.com/capstan-project/capstan/chartgen/limit"
)

// Limits of a text. Real components have at most 70 expressions and escaped dollar signs in total, of 2 KiB, and one
// expression in the default of another.
const (
	maxTokens     = 2000
	maxExpression = 16 << 10 // bytes
	// maxWritten is the size of all expressions together, those in defaults counted again, in bytes.
	maxWritten = 512 << 10
	// maxDepth is how many expressions contain each other.
	maxDepth = 20
)

// mark replaces each byte of an expression in a masked text. To YAML it is a letter that no escape begins with.
const mark = "m"

// legacy matches the form with spaces.
var legacy = regexp.MustCompile(`\$\{\s*([A-Za-z0-9_$]+)\s*\}`)

// Expression is what an expression does.
type Expression struct {
	// Name of the variable.
	Name string `json:"name"`
	// Default replaces a value that is empty or not set.
	Default string `json:"default,omitempty"`
	// Expressions are those in Default, by how they are written.
	Expressions map[string]Expression `json:"expressions,omitempty"`
	// Prefix is replaced by Replacement where a value begins with it, if it is not empty.
	Prefix      string `json:"prefix,omitempty"`
	Replacement string `json:"replacement,omitempty"`

	tokens []token // in Default
}

// write writes what the expression becomes with these values of variables, in parts: it may be large.
func (e *Expression) write(values map[string]string, write func(string)) {
	value := values[e.Name]

	switch rest, found := strings.CutPrefix(value, e.Prefix); {
	case found && e.Prefix != "":
		write(e.Replacement)
		write(rest)
	case value == "":
		replace(e.Default, 0, e.tokens, values, write)
	default:
		write(value)
	}
}

// Variable describes how a text uses a variable.
type Variable struct {
	Name string
	// Required reports whether clusterctl requires a value: the first use in the whole file has no default.
	Required bool
	// Defaults are the distinct defaults as written, in order of use.
	Defaults []string
}

// IsDerived reports whether a default contains other variables.
func (v *Variable) IsDerived() bool {
	return slices.ContainsFunc(v.Defaults, func(word string) bool { return strings.Contains(word, "${") })
}

// Text is a text with expressions, or a part of one. It is immutable.
type Text struct {
	source       string
	offset, line int             // of the source in the file; lines start at 0 here
	tokens       []token         // in the source's part of the file
	required     map[string]bool // the variables of the whole file
}

// token is an escaped dollar sign or an expression.
type token struct {
	start, end, line int
	written          string
	expression       *Expression // nil for a dollar sign
	optional         bool        // the expression has an operator
	err              error       // why drone/envsubst cannot read the expression of a cluster template
}

// SyntaxError reports an expression that a chart cannot contain.
type SyntaxError struct {
	Line       int    // of the file, starting at 1
	Expression string // as written, shortened to one line; empty if the error is about none
	Err        error  // the reason, and what to write instead
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d: %s", e.Line, e.Reason())
}

// Reason returns the error without its line.
func (e *SyntaxError) Reason() string {
	if e.Expression == "" {
		return e.Err.Error()
	}

	return fmt.Sprintf("expression %s: %v", e.Expression, e.Err)
}

func (e *SyntaxError) Unwrap() error { return e.Err }

// MissingError reports that required variables have no value.
type MissingError struct {
	Names []string // sorted
}

func (e *MissingError) Error() string {
	return "no value for required variables: " + strings.Join(e.Names, ", ")
}

// errUnsupported is the cause of the error for expressions that clusterctl accepts and a chart does not.
var errUnsupported = errors.New("not supported in a chart")

// Parse reads the expressions of a file. The error is a *SyntaxError.
func Parse(source string) (*Text, error) { return read(source, (*token).parse) }

// ParseTemplate reads the expressions of a cluster template, which only clusterctl replaces. Of expressions that charts
// do not support, it reads the variable alone. The error is a *SyntaxError.
func ParseTemplate(source string) (*Text, error) {
	t, err := read(source, (*token).parseAny)
	if err != nil {
		return nil, err
	}

	if _, err := envsubst.Parse(withoutSpaces(source)); err != nil {
		for _, k := range t.tokens {
			if k.err != nil {
				return nil, k.invalid(k.err)
			}
		}

		return nil, t.invalid(0, "", fmt.Errorf("%w: %s", err, toWrite))
	}

	return t, nil
}

func read(source string, parse func(*token) error) (*Text, error) {
	t := &Text{source: source, required: map[string]bool{}}

	if end := strings.IndexByte(source, 0); end >= 0 {
		return nil, t.invalid(end, "", errors.New("the text has a NUL character, at which clusterctl ends it; remove it"))
	}

	line, counted, written := 1, 0, 0

	for f := range find(source, true) {
		line += strings.Count(source[counted:f.start], "\n")
		counted = f.start
		k := token{start: f.start, end: f.end, line: line, written: source[f.start:f.end]}

		if len(t.tokens) == maxTokens {
			return nil, k.invalid(fmt.Errorf("%w: the text has more than %d expressions", errUnsupported, maxTokens))
		}

		if err := f.check(); err != nil {
			return nil, k.invalid(err)
		}

		if written += f.written; written > maxWritten {
			return nil, k.invalid(fmt.Errorf("%w: the expressions up to here are larger than %d KiB, those in defaults "+
				"counted again; shorten them", errUnsupported, maxWritten>>10))
		}

		if f.isExpression() {
			if err := parse(&k); err != nil {
				return nil, k.invalid(err)
			}

			if _, used := t.required[k.expression.Name]; !used {
				t.required[k.expression.Name] = !k.optional
			}
		}

		t.tokens = append(t.tokens, k)
	}

	return t, nil
}

// parse sets the expression of a token.
func (k *token) parse() (err error) {
	if len(k.written) > maxExpression {
		return fmt.Errorf("%w: it is longer than %d bytes", errUnsupported, maxExpression)
	}

	k.expression, k.optional, err = parseExpression(k.written)

	return err
}

// parseExpression returns an expression, and whether it has an operator.
func parseExpression(written string) (e *Expression, optional bool, err error) {
	tree, err := parse.Parse(withoutSpaces(written))
	if err != nil {
		return nil, false, fmt.Errorf("%w: %s", err, toWrite)
	}

	root, ok := tree.Root.(*parse.FuncNode)
	if !ok {
		return nil, false, errNested
	}

	switch {
	case root.Name == "/#" && len(root.Args) == 2:
		e, err = parsePrefix(root)
	case root.Name == "":
		e = &Expression{Name: root.Param}
	case slices.Contains([]string{"=", ":=", ":-", ":+", ":?"}, root.Name):
		e, err = parseDefault(root.Param, written[len("${")+len(root.Param)+len(root.Name):len(written)-len("}")])
	default:
		err = fmt.Errorf("%w: charts have ${NAME}, ${NAME:=default} and ${NAME/#prefix/replacement}; use one of these",
			errUnsupported)
	}

	return e, len(root.Args) > 0, err
}

// parsePrefix returns the expression that replaces a prefix.
func parsePrefix(root *parse.FuncNode) (*Expression, error) {
	prefix, isText := root.Args[0].(*parse.TextNode)
	replacement, areTexts := root.Args[1].(*parse.TextNode)

	if !isText || !areTexts {
		return nil, errNested
	}

	return &Expression{Name: root.Param, Prefix: prefix.Value, Replacement: replacement.Value}, nil
}

// parseDefault returns the expression of a variable with a default, and of those in the default.
func parseDefault(name, word string) (*Expression, error) {
	e := &Expression{Name: name, Default: word}

	for f := range find(word, false) {
		k := token{start: f.start, end: f.end, written: word[f.start:f.end]}
		if err := k.parse(); err != nil {
			return nil, fmt.Errorf("%s: %w", shorten(k.written), err)
		}

		if e.Expressions == nil {
			e.Expressions = map[string]Expression{}
		}

		e.Expressions[k.written] = *k.expression
		e.tokens = append(e.tokens, k)
	}

	return e, nil
}

// name matches the beginning of an expression.
var name = regexp.MustCompile(`^\$\{\s*#?(\w+)`)

// parseAny is like parse for an expression that charts may not support.
func (k *token) parseAny() error {
	if k.err = k.parse(); k.err == nil {
		return nil
	}

	match := name.FindStringSubmatch(k.written)
	if match == nil {
		return errors.New(toWrite)
	}

	if errors.Is(k.err, errUnsupported) {
		k.err = nil // only a chart
	}

	k.expression, k.optional = &Expression{Name: match[1]}, true

	return nil
}

// toWrite is what to write instead of an expression that cannot be parsed.
const toWrite = "write ${NAME} or ${NAME:=default}, or \"$${\" for the literal text \"${\""

var errNested = fmt.Errorf("%w: only the default of a variable may contain another expression; "+
	"use a variable of its own", errUnsupported)

// withoutSpaces rewrites ${ NAME } to ${NAME}, as clusterctl does before it looks for expressions.
func withoutSpaces(source string) string { return legacy.ReplaceAllString(source, "$${${1}}") }

func (k *token) invalid(err error) *SyntaxError {
	return &SyntaxError{Line: k.line, Expression: shorten(k.written), Err: err}
}

// invalid returns the error for a position in the source.
func (t *Text) invalid(at int, written string, err error) *SyntaxError {
	line := t.line + 1 + strings.Count(t.source[:at], "\n")

	return &SyntaxError{Line: line, Expression: shorten(written), Err: err}
}

// shorten returns the beginning of an expression, on one line, for messages.
func shorten(written string) string {
	const maxLength = 60

	written, _, _ = strings.Cut(written, "\n")
	if len(written) <= maxLength {
		return written
	}

	return strings.ToValidUTF8(written[:maxLength], "") + "…"
}

// Slice returns a part of the text, such as a document that begins on a line. start and end are offsets in bytes. Line
// numbers and required variables stay those of the whole file. The error is a *SyntaxError if an expression crosses the
// border.
func (t *Text) Slice(start, end, line int) (*Text, error) {
	part := t.Part(start, end)
	part.line = line - 1

	for _, k := range part.tokens {
		if k.start < part.offset || k.end > part.offset+len(part.source) {
			return nil, k.invalid(errors.New("it extends into the next document; close it before"))
		}
	}

	return part, nil
}

// Part returns the part of the text between two offsets in bytes, which no expression crosses.
func (t *Text) Part(start, end int) *Text {
	part := &Text{source: t.source[start:end], offset: t.offset + start, required: t.required}
	first := sort.Search(len(t.tokens), func(i int) bool { return t.tokens[i].end > part.offset })
	last := sort.Search(len(t.tokens), func(i int) bool { return t.tokens[i].start >= part.offset+len(part.source) })
	part.tokens = t.tokens[first:last]

	return part
}

// IsPlain reports whether the text has neither expressions nor escaped dollar signs.
func (t *Text) IsPlain() bool { return len(t.tokens) == 0 }

// HasExpressions reports whether the text has expressions.
func (t *Text) HasExpressions() bool {
	return slices.ContainsFunc(t.tokens, func(k token) bool { return k.expression != nil })
}

// String returns the text as written.
func (t *Text) String() string { return t.source }

// Check returns a *SyntaxError unless clusterctl reads the text as this package does.
func (t *Text) Check() error {
	if len(t.tokens) == 0 {
		return nil // a single dollar sign, as in the patterns of CRDs, is one for clusterctl, too
	}

	if err := t.compare(); err != nil {
		at := t.tokens[0].start - t.offset

		return t.invalid(at, t.source[at:], err)
	}

	return nil
}

func (t *Text) compare() error {
	tree, err := envsubst.Parse(withoutSpaces(t.source))
	if err != nil {
		return fmt.Errorf("%w: %s", err, toWrite)
	}

	all, inDefaults := map[string]string{}, map[string]string{}

	for _, v := range t.Variables() {
		all[v.Name] = "value-of-" + v.Name

		if !v.IsDerived() {
			inDefaults[v.Name] = all[v.Name]
		}
	}

	for _, values := range []map[string]string{{}, all, inDefaults} {
		theirs, err := tree.Execute(func(name string) string { return values[name] })
		if err != nil || theirs != t.Replace(values) {
			return fmt.Errorf("%w: clusterctl reads an expression of this document in another way, because of a dollar sign, "+
				"a brace or a backslash next to it; leave that out", errUnsupported)
		}
	}

	return nil
}

// Variables returns the variables of the text, and of its defaults, sorted by name.
func (t *Text) Variables() []Variable {
	byName := map[string]*Variable{}
	t.addVariables(byName, t.tokens)

	variables := make([]Variable, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		variables = append(variables, *byName[name])
	}

	return variables
}

// addVariables adds the variables of tokens, and those in their defaults.
func (t *Text) addVariables(byName map[string]*Variable, tokens []token) {
	for _, k := range tokens {
		if k.expression == nil {
			continue
		}

		v := byName[k.expression.Name]
		if v == nil {
			v = &Variable{Name: k.expression.Name, Required: t.required[k.expression.Name]}
			byName[v.Name] = v
		}

		if k.expression.Default != "" && !slices.Contains(v.Defaults, k.expression.Default) {
			v.Defaults = append(v.Defaults, k.expression.Default)
		}

		t.addVariables(byName, k.expression.tokens)
	}
}

// Expressions returns the expressions of the text, by how they are written.
func (t *Text) Expressions() map[string]Expression {
	expressions := map[string]Expression{}

	for _, k := range t.tokens {
		if k.expression != nil {
			expressions[k.written] = *k.expression
		}
	}

	return expressions
}

// Expand replaces the expressions by the values of their variables. A variable that is missing in the map is not set.
// The error is a *MissingError if a required variable is not set, and a *limit.Error if the result would be larger than
// limit.MaxText.
func (t *Text) Expand(values map[string]string) (string, error) {
	if _, err := t.Size(values); err != nil {
		return "", err
	}

	return t.Replace(values), nil
}

// Size returns the size of the text that Expand returns, in bytes, and the same errors.
func (t *Text) Size(values map[string]string) (int, error) {
	var missing []string

	for _, v := range t.Variables() {
		if _, set := values[v.Name]; v.Required && !set {
			missing = append(missing, v.Name)
		}
	}

	if missing != nil {
		return 0, &MissingError{Names: missing}
	}

	size := 0

	replace(t.source, t.offset, t.tokens, values, func(part string) { size += len(part) })

	if size > limit.MaxText {
		return 0, &limit.Error{Reason: fmt.Sprintf("is larger than %d MiB", limit.MaxText>>20)}
	}

	return size, nil
}

// Range is a part of a text, in bytes.
type Range struct{ Start, End int }

// Masked returns the text with letters in place of its expressions and escaped dollar signs, as many as they have
// bytes, and where those are.
func (t *Text) Masked() (text string, masked []Range) {
	var b strings.Builder

	at := 0

	for _, k := range t.tokens {
		r := Range{Start: k.start - t.offset, End: k.end - t.offset}
		masked = append(masked, r)

		b.WriteString(t.source[at:r.Start])
		b.WriteString(strings.Repeat(mark, r.End-r.Start))

		at = r.End
	}

	b.WriteString(t.source[at:])

	return b.String(), masked
}

// Replace is Expand for values that Size has checked. It replaces the expressions in one pass.
func (t *Text) Replace(values map[string]string) string {
	var b strings.Builder

	replace(t.source, t.offset, t.tokens, values, func(part string) { b.WriteString(part) })

	return b.String()
}

// replace writes a text with values in place of its tokens. Their positions count from an offset before it.
func replace(source string, offset int, tokens []token, values map[string]string, write func(string)) {
	at := 0

	for _, k := range tokens {
		write(source[at : k.start-offset])

		if k.expression == nil {
			write("$")
		} else {
			k.expression.write(values, write)
		}

		at = k.end - offset
	}

	write(source[at:])
}
