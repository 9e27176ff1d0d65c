package expr

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/drone/envsubst/v2/parse"
)

// maxExpression bounds the bytes of an expression, and with it the work and the
// depth of nesting that a broken or hostile text can cause.
const maxExpression = 16 << 10

// ErrUnsupported marks an expression that clusterctl takes and a chart cannot.
var ErrUnsupported = errors.New("not supported in a chart")

// SyntaxError is an expression that cannot be read or compiled. Its position is
// that of the outermost "${" in the text given to Parse; it knows no file name.
type SyntaxError struct {
	Line, Column int    // from 1; columns count characters
	Expression   string // as in the text, shortened to one line
	Err          error  // the reason, and what to write instead
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: expression %s: %v", e.Line, e.Column, e.Expression, e.Err)
}

func (e *SyntaxError) Unwrap() error { return e.Err }

// legacy is the form that clusterctl, before anything else and wherever it
// stands, rewrites to ${NAME}.
var legacy = regexp.MustCompile(`\$\{\s*([A-Za-z0-9_$]+)\s*\}`)

// legacyEscaped is what such a form leaves behind the "$$" that makes it text.
var legacyEscaped = regexp.MustCompile(`^\{(\s*)[A-Za-z0-9_$]+(\s*)\}`)

// Parse reads text as clusterctl does: the legacy form ${ NAME }, "$$" for one
// "$", and a NUL that ends the text are those of drone/envsubst. The error is a
// *SyntaxError.
func Parse(text string) (*Text, error) {
	r := reader{source: text, line: 1, text: &Text{required: map[string]bool{}}}
	if err := r.read(); err != nil {
		return nil, err
	}

	if err := r.compile(); err != nil {
		return nil, err
	}

	return r.text, nil
}

// reader cuts a text into segments. Only expressions go through drone/envsubst's
// parser: it decodes every character and copies the whole text at each "$$".
type reader struct {
	source  string
	text    *Text
	counted int // the offset up to which line counts the newlines
	line    int
}

func (r *reader) read() error {
	start, at := 0, 0 // of the literal text being read, and where to look on
	for {
		next := strings.IndexByte(r.source[at:], '$')
		if next < 0 {
			r.literal(start, len(r.source))
			return nil
		}

		at += next
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

// literal adds source[start:end]; false says that the text ends in it.
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

// escaped reads what follows "$$" and returns where literal text goes on: a
// legacy form loses its spaces there too.
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

// expression reads the one at source[start:], which begins with "${", and
// returns its end: the first closing brace with which drone/envsubst's parser
// takes it. The parser reads from left to right and never looks behind the
// brace that closes, so this is where it stops in the whole text.
func (r *reader) expression(start int) (int, error) {
	rest := r.source[start:min(len(r.source), start+maxExpression)]
	unclosed := 0 // a lower bound, as "$${" need not open anything

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

		tree, err := parse.Parse(source)
		if err != nil {
			continue
		}

		if root, ok := tree.Root.(*parse.FuncNode); ok {
			e := r.begin(start, rest[:end])
			e.source, e.root = source, root
			r.add(segment{start: start, end: start + end, expression: e})

			return start + end, nil
		}
	}
}

// begin makes an expression at an offset that is not before that of the last call.
func (r *reader) begin(start int, written string) *expression {
	r.line += strings.Count(r.source[r.counted:start], "\n")
	r.counted = start
	lineStart := strings.LastIndexByte(r.source[:start], '\n') + 1
	column := utf8.RuneCountInString(r.source[lineStart:start]) + 1

	return &expression{written: written, line: r.line, column: column}
}

func (r *reader) add(s segment) {
	r.text.segments = append(r.text.segments, s)

	name := s.expression.root.Param
	if _, seen := r.text.required[name]; !seen {
		r.text.required[name] = len(s.expression.root.Args) == 0
	}
}

// compile gives each expression its action. It comes after reading, because an
// action depends on whether its variable is required.
func (r *reader) compile() (err error) {
	for e := range r.text.expressions() {
		if e.action, err = (compiler{r.text.required}).pipeline(e.root); err != nil {
			return e.syntaxError(err)
		}
	}

	return nil
}

// reason says why no expression begins at source[start:].
func (r *reader) reason(start int) error {
	const far = 64 * maxExpression // an end so far away is still looked for

	_, err := parse.Parse(withoutLegacy(r.source[start:min(len(r.source), start+far)]))
	switch {
	case err == nil:
		return fmt.Errorf("%w: it is longer than %d bytes", ErrUnsupported, maxExpression)
	case errors.Is(err, parse.ErrParseVariableName):
		return fmt.Errorf(
			"%w: a name of letters, digits and _ must follow \"${\", which as mere text is written \"$${\"",
			err,
		)
	default:
		return fmt.Errorf(
			"%w: write ${NAME}, ${NAME:=default} or another form of envsubst, and \"$${\" for \"${\" as mere text",
			err,
		)
	}
}

// shorten cuts text that begins with an expression down to what names it.
func shorten(source string) string {
	const enough = 60

	if end := strings.IndexAny(source, "\r\n"); end >= 0 {
		source = source[:end]
	}

	if len(source) <= enough {
		return source
	}

	return strings.ToValidUTF8(source[:enough], "") + "…"
}

func withoutLegacy(source string) string {
	if !strings.ContainsAny(source, " \t\r\n\f") {
		return source
	}

	return legacy.ReplaceAllString(source, "$${${1}}")
}
