package expr

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/drone/envsubst/v2/parse"
)

// element is an element of a glob.
type element struct {
	kind elementKind
	text string
}

type elementKind int

const (
	star    elementKind = iota
	literal             // text that matches itself
	pattern             // a regular expression for a run of characters
)

// trimOperator is "#" or "##" for the shortest or longest prefix, "%" or "%%" for the shortest or
// longest suffix.
type trimOperator string

func (o trimOperator) suffix() bool { return o[0] == '%' }

func (o trimOperator) longest() bool { return len(o) == 2 }

// isTrim reports whether an expression removes what a glob matches.
func isTrim(fn *parse.FuncNode) bool {
	switch fn.Name {
	case "#", "##", "%", "%%":
		return len(fn.Args) > 0 // ${#NAME} is a length and has no arguments
	}

	return false
}

// trim compiles ${NAME#glob}, ##, %, and %%. Globs of text and stars are compiled to functions of
// the template engine. All others call capstan.trim, which repeats the search of drone/envsubst: it
// tries every prefix byte by byte, even if it ends inside a character. For % and %% it searches the
// reversed value with the reversed glob, in which a character class is not a class any more.
func (c compiler) trim(fn *parse.FuncNode) (string, error) {
	text, ok := fn.Args[0].(*parse.TextNode)
	if !ok {
		return "", fmt.Errorf("%w: the pattern after %s is itself an expression; write it out", ErrUnsupported, fn.Name)
	}

	operator := trimOperator(fn.Name)

	source := text.Value
	if operator.suffix() {
		source = reverse(source)
	}

	glob, ok := parseGlob(source)
	if !ok {
		return c.head(fn.Param), nil // a malformed glob matches nothing
	}

	simple := glob
	if operator.suffix() {
		simple = reversed(glob)
	}

	if !operator.longest() {
		simple = withoutOuterStar(simple, operator)
	}

	switch {
	case len(simple) == 1 && simple[0].kind == literal && operator.suffix():
		return c.head(fn.Param) + " | trimSuffix " + quote(simple[0].text), nil
	case len(simple) == 1 && simple[0].kind == literal:
		return c.head(fn.Param) + " | trimPrefix " + quote(simple[0].text), nil
	case strings.ContainsRune(text.Value, utf8.RuneError):
		return "", fmt.Errorf("%w: the pattern after %s contains U+FFFD or invalid UTF-8", ErrUnsupported, fn.Name)
	case len(simple) == 0 || slices.ContainsFunc(simple, func(e element) bool { return e.kind == pattern }):
		return c.search(fn, glob), nil
	}

	return c.replaceRegexp(fn.Param, simple, operator), nil
}

// replaceRegexp compiles a glob of text and stars to a regular expression. Lazy stars match the
// shortest prefix. A search finds the leftmost match, which is the longest suffix. For the shortest
// suffix, a greedy group before it takes as much as possible.
func (c compiler) replaceRegexp(name string, glob []element, operator trimOperator) string {
	anyText := ".*"
	if operator == "#" {
		anyText = ".*?"
	}

	var re strings.Builder

	for _, e := range glob {
		if e.kind == star {
			re.WriteString(anyText)
		} else {
			re.WriteString(regexp.QuoteMeta(e.text))
		}
	}

	switch {
	case !operator.suffix():
		return fmt.Sprintf(`regexReplaceAllLiteral %s %s ""`, quote("(?s)^"+re.String()), c.value(name))
	case operator.longest():
		return fmt.Sprintf(`regexReplaceAllLiteral %s %s ""`, quote("(?s)"+re.String()+"$"), c.value(name))
	}

	return fmt.Sprintf(`regexReplaceAll %s %s "${1}"`, quote("(?s)^(.*)"+re.String()+"$"), c.value(name))
}

// search compiles a glob to a call of capstan.trim.
func (c compiler) search(fn *parse.FuncNode, glob []element) string {
	args := []string{quote(fn.Name), c.value(fn.Param)}

	for _, e := range glob {
		switch e.kind {
		case star:
			args = append(args, `"*"`)
		case literal:
			args = append(args, quote(regexp.QuoteMeta(e.text)))
		default:
			args = append(args, quote(e.text))
		}
	}

	return include("trim", args)
}

// withoutOuterStar removes the star at the inner end of a prefix or suffix. In the shortest match,
// it matches nothing.
func withoutOuterStar(glob []element, operator trimOperator) []element {
	last := len(glob) - 1

	switch {
	case operator.suffix() && glob[0].kind == star:
		return glob[1:]
	case !operator.suffix() && glob[last].kind == star:
		return glob[:last]
	}

	return glob
}

// parseGlob parses a glob, which must not be empty, like package path of drone/envsubst. It reports
// false if the glob is malformed and therefore never matches.
func parseGlob(glob string) ([]element, bool) {
	var elements []element

	for glob != "" {
		e := element{literal, glob[:1]}
		rest := glob[1:]

		switch glob[0] {
		case '*':
			e = element{star, ""}
		case '?':
			e = element{pattern, "."}
		case '[':
			class, after, ok := parseClass(rest)
			if !ok {
				return nil, false
			}

			e, rest = element{pattern, class}, after
		case '\\':
			if rest == "" {
				return nil, false
			}

			e, rest = element{literal, rest[:1]}, rest[1:]
		}

		elements = appendElement(elements, e)
		glob = rest
	}

	return elements, true
}

// appendElement appends an element, or merges it with the last one if possible.
func appendElement(elements []element, e element) []element {
	if len(elements) == 0 {
		return []element{e}
	}

	last := &elements[len(elements)-1]

	switch {
	case last.kind == star && e.kind == star:
	case last.kind == star || e.kind == star:
		return append(elements, e)
	case last.kind == e.kind:
		last.text += e.text
	case last.kind == literal:
		*last = element{pattern, regexp.QuoteMeta(last.text) + e.text}
	default:
		last.text += regexp.QuoteMeta(e.text)
	}

	return elements
}

// parseClass parses a character class after its "[". It returns the class as a regular expression,
// and the text after the "]".
func parseClass(glob string) (class, rest string, ok bool) {
	negated := strings.HasPrefix(glob, "^")
	glob = strings.TrimPrefix(glob, "^")

	var ranges strings.Builder

	for first := true; first || !strings.HasPrefix(glob, "]"); first = false {
		var low, high rune
		if low, glob, ok = classRune(glob); !ok {
			return "", "", false
		}

		high = low
		if strings.HasPrefix(glob, "-") {
			if high, glob, ok = classRune(glob[1:]); !ok {
				return "", "", false
			}
		}

		switch {
		case low == high:
			ranges.WriteString(quoteClass(low))
		case low < high:
			ranges.WriteString(quoteClass(low) + "-" + quoteClass(high))
		}
	}

	switch {
	case ranges.Len() == 0 && negated:
		return ".", glob[1:], true
	case ranges.Len() == 0:
		return `[^\x00-\x{10FFFF}]`, glob[1:], true // matches nothing
	case negated:
		return "[^" + ranges.String() + "]", glob[1:], true
	}

	return "[" + ranges.String() + "]", glob[1:], true
}

// classRune parses a character of a class, which may be escaped. It reports false if the class ends
// here or after the character.
func classRune(glob string) (r rune, rest string, ok bool) {
	if strings.HasPrefix(glob, "-") || strings.HasPrefix(glob, "]") {
		return 0, "", false
	}

	glob = strings.TrimPrefix(glob, `\`)
	r, size := utf8.DecodeRuneInString(glob)

	return r, glob[size:], len(glob) > size && (r != utf8.RuneError || size > 1)
}

// quoteClass escapes a character for the class of a regular expression.
func quoteClass(r rune) string {
	if r < utf8.RuneSelf && strings.ContainsRune(`\]^-[`, r) {
		return `\` + string(r)
	}

	return string(r)
}

// reverse returns the characters of text in reverse order, like drone/envsubst.
func reverse(text string) string {
	runes := []rune(text)
	slices.Reverse(runes)

	return string(runes)
}

// reversed returns a glob for the reversed text. It does not support patterns.
func reversed(glob []element) []element {
	out := make([]element, 0, len(glob))
	for _, e := range slices.Backward(glob) {
		out = append(out, element{e.kind, reverse(e.text)})
	}

	return out
}
