package expr

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/drone/envsubst/v2/parse"
)

// legacy matches the form that clusterctl rewrites to ${NAME} before it evaluates expressions,
// anywhere in the text.
var legacy = regexp.MustCompile(`\$\{\s*([A-Za-z0-9_$]+)\s*\}`)

// legacyEscaped matches the rest of such a form after an escaping "$$".
var legacyEscaped = regexp.MustCompile(`^\{(\s*)[A-Za-z0-9_$]+(\s*)\}`)

// Parse parses text like clusterctl, including the legacy form ${ NAME }, "$$" for a single "$",
// and NUL as the end of the text. Errors are of type *SyntaxError.
func Parse(text string) (*Text, error) {
	r := reader{
		source: text,
		text:   &Text{required: map[string]bool{}},
		parsed: map[string]*parse.FuncNode{},
		line:   1,
		column: 1,
	}
	if err := r.read(); err != nil {
		return nil, err
	}

	if err := r.compile(); err != nil {
		return nil, err
	}

	return r.text, nil
}

// reader splits a text into segments. It passes only expressions to drone/envsubst's parser, which
// is slow: it decodes every character, and copies the whole text at each "$$".
type reader struct {
	source string
	text   *Text
	parsed map[string]*parse.FuncNode // by the source of an expression

	line, column int // the position at the offset counted, starting at 1
	counted      int

	expressions, expressionBytes, retries int
}

// read reads the whole source.
func (r *reader) read() error {
	start := 0 // the beginning of the current literal text
	at := 0    // the position from which to search

	for {
		next := strings.IndexByte(r.source[at:], '$')
		if next < 0 {
			r.literal(start, len(r.source))
			return nil
		}

		at += next

		if len(r.text.segments) > maxSegments {
			return r.begin(at, r.source[at:min(len(r.source), at+2)]).syntaxError(
				fmt.Errorf("%w: the text has more than %d \"$$\" and expressions", ErrUnsupported, maxSegments))
		}

		switch {
		case strings.HasPrefix(r.source[at:], "${"):
			if !r.literal(start, at) {
				return nil
			}

			end, err := r.expression(at)
			if err != nil {
				return err
			}

			start, at = end, end
		case strings.HasPrefix(r.source[at:], "$$"):
			if !r.literal(start, at+1) {
				return nil
			}

			at = r.escaped(at + 2)
			start = at
		default:
			at++
		}
	}
}

// literal appends source[start:end]. It reports false if the text ends there, with a NUL.
func (r *reader) literal(start, end int) bool {
	nul := strings.IndexByte(r.source[start:end], 0)
	if nul >= 0 {
		end = start + nul
	}

	if start < end {
		r.text.segments = append(r.text.segments, segment{start: start, end: end, literal: r.source[start:end]})
	}

	return nul < 0
}

// escaped reads the text after "$$" and returns the offset where literal text continues. Even after
// "$$", the legacy form loses its spaces.
func (r *reader) escaped(at int) int {
	spaces := legacyEscaped.FindStringSubmatchIndex(r.source[at:])
	if spaces == nil {
		return at
	}

	r.literal(at, at+1)

	name, end := at+spaces[3], at+spaces[4]

	for {
		pair := strings.Index(r.source[name:end], "$$")
		if pair < 0 {
			r.literal(name, end)
			return at + spaces[5]
		}

		r.literal(name, name+pair+1)
		name += pair + 2
	}
}

// expression reads the expression at source[start:], which begins with "${", and returns the offset
// of its end: the first closing brace at which drone/envsubst's parser accepts it. The parser reads
// from left to right and never looks past the closing brace, so it also ends there in the whole
// text.
func (r *reader) expression(start int) (int, error) {
	rest := r.source[start:min(len(r.source), start+maxExpression)]
	unclosed := 0 // a lower bound, because "$${" may not open an expression

	for end := 0; ; {
		brace := strings.IndexByte(rest[end:], '}')
		if brace < 0 {
			e := r.begin(start, rest)
			return 0, e.syntaxError(r.reason(start))
		}

		inner := rest[end : end+brace]
		unclosed += strings.Count(inner, "${") - strings.Count(inner, "$${") - 1
		end += brace + 1

		if unclosed > 0 {
			continue
		}

		source := withoutLegacy(rest[:end])

		root, err := r.parse(source)
		if err != nil {
			if r.retries++; r.retries > maxRetries {
				e := r.begin(start, rest)
				return 0, e.syntaxError(r.reason(start))
			}

			continue
		}

		if root != nil {
			e := r.begin(start, rest[:end])
			e.source, e.root = source, root

			if err := r.add(segment{start: start, end: start + end, expression: e}); err != nil {
				return 0, e.syntaxError(err)
			}

			return start + end, nil
		}
	}
}

// parse parses an expression, the same one only once. It returns nil if the source is something else.
func (r *reader) parse(source string) (*parse.FuncNode, error) {
	if root := r.parsed[source]; root != nil {
		return root, nil
	}

	tree, err := parse.Parse(source)
	if err != nil {
		return nil, err
	}

	root, _ := tree.Root.(*parse.FuncNode)
	r.parsed[source] = root

	return root, nil
}

// begin returns a new expression at an offset, which must not be less than in the previous call.
func (r *reader) begin(start int, written string) *expression {
	passed := r.source[r.counted:start]
	r.counted = start

	if end := strings.LastIndexByte(passed, '\n'); end >= 0 {
		r.line += strings.Count(passed, "\n")
		r.column = 1
		passed = passed[end+1:]
	}

	r.column += utf8.RuneCountInString(passed)

	return &expression{written: written, line: r.line, column: r.column}
}

// add appends the segment of an expression.
func (r *reader) add(s segment) error {
	root := s.expression.root

	r.expressions += count(root)
	r.expressionBytes += s.end - s.start

	switch {
	case depth(root) > maxNesting:
		return fmt.Errorf("%w: it has more than %d levels of expressions", ErrUnsupported, maxNesting)
	case r.expressions > maxExpressions:
		return fmt.Errorf("%w: the text has more than %d expressions", ErrUnsupported, maxExpressions)
	case r.expressionBytes > maxExpressionBytes:
		return fmt.Errorf("%w: the expressions of the text are larger than %d KiB", ErrUnsupported, maxExpressionBytes>>10)
	}

	r.text.segments = append(r.text.segments, s)

	if _, seen := r.text.required[root.Param]; !seen {
		r.text.required[root.Param] = len(root.Args) == 0
	}

	return nil
}

// compile sets the action of each expression. This requires the whole text, because an action
// depends on whether its variable is required.
func (r *reader) compile() error {
	c := compiler{r.text.required}

	for e := range r.text.expressions() {
		action, err := c.pipeline(e.root)
		if err != nil {
			return e.syntaxError(err)
		}

		e.action = action
	}

	return nil
}

// reason returns why there is no valid expression at source[start:].
func (r *reader) reason(start int) error {
	const far = 2 * maxExpression // tells an expression that is too long from one without an end

	_, err := parse.Parse(withoutLegacy(r.source[start:min(len(r.source), start+far)]))
	switch {
	case err == nil:
		return fmt.Errorf("%w: it is longer than %d bytes, or contains too many braces", ErrUnsupported, maxExpression)
	case errors.Is(err, parse.ErrParseVariableName):
		return fmt.Errorf(
			"%w: write a name of letters, digits, and _ after \"${\", or \"$${\" for the literal text \"${\"", err)
	default:
		return fmt.Errorf(
			"%w: write ${NAME}, ${NAME:=default}, or another form of envsubst, or \"$${\" for the literal text \"${\"", err)
	}
}

// withoutLegacy rewrites the legacy form ${ NAME } to ${NAME}.
func withoutLegacy(source string) string {
	if !strings.ContainsAny(source, " \t\r\n\f") {
		return source
	}

	return legacy.ReplaceAllString(source, "$${${1}}")
}
