package expr

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/drone/envsubst/v2/parse"
)

// element is a piece of a glob: a star, text that stands for itself, or a
// regular expression for a run of characters.
type element struct {
	kind kind
	text string
}

type kind int

const (
	star kind = iota
	literal
	pattern
)

// trims reports whether an expression cuts off what a glob matches.
func trims(fn *parse.FuncNode) bool {
	switch fn.Name {
	case "#", "##", "%", "%%":
		return len(fn.Args) > 0 // ${#NAME}, a length, has none
	}

	return false
}

// trim compiles ${NAME#glob}, ##, % and %%. Globs of text and stars become
// what the engine has. The others go through capstan.trim, which repeats the
// search of drone/envsubst: it tries every prefix by bytes, also those that end
// inside a character, and for % and %% on the reversed value with the reversed
// glob, so that a class there is none.
func (c compiler) trim(fn *parse.FuncNode) (string, error) {
	text, ok := fn.Args[0].(*parse.TextNode)
	if !ok {
		return "", fmt.Errorf("%w: the pattern after %s is itself an expression; write it out", ErrUnsupported, fn.Name)
	}

	suffix, longest := fn.Name[0] == '%', len(fn.Name) == 2

	source := text.Value
	if suffix {
		source = reverse(source)
	}

	glob, ok := parseGlob(source)
	if !ok {
		return c.head(fn.Param), nil // a malformed glob matches nothing
	}

	simple := glob
	if suffix {
		simple = reversed(glob)
	}

	if !longest {
		simple = withoutOuterStar(simple, suffix)
	}

	switch {
	case len(simple) == 1 && simple[0].kind == literal && suffix:
		return c.head(fn.Param) + " | trimSuffix " + quote(simple[0].text), nil
	case len(simple) == 1 && simple[0].kind == literal:
		return c.head(fn.Param) + " | trimPrefix " + quote(simple[0].text), nil
	case strings.ContainsRune(text.Value, utf8.RuneError):
		return "", fmt.Errorf("%w: the pattern after %s holds bytes that are not UTF-8, or U+FFFD", ErrUnsupported, fn.Name)
	case len(simple) == 0 || slices.ContainsFunc(simple, func(e element) bool { return e.kind == pattern }):
		return c.search(fn, glob), nil
	}

	return c.replaceRegexp(fn.Param, simple, suffix, longest), nil
}

// replaceRegexp compiles a glob of text and stars. The shortest prefix has lazy
// stars. A search finds the leftmost match, hence the longest suffix; for the
// shortest one, a greedy group leaves to the suffix as little as it can.
func (c compiler) replaceRegexp(name string, glob []element, suffix, longest bool) string {
	run := ".*"
	if !suffix && !longest {
		run = ".*?"
	}

	var re strings.Builder

	for _, e := range glob {
		if e.kind == star {
			re.WriteString(run)
		} else {
			re.WriteString(regexp.QuoteMeta(e.text))
		}
	}

	switch {
	case !suffix:
		return fmt.Sprintf(`regexReplaceAllLiteral %s %s ""`, quote("(?s)^"+re.String()), c.value(name))
	case longest:
		return fmt.Sprintf(`regexReplaceAllLiteral %s %s ""`, quote("(?s)"+re.String()+"$"), c.value(name))
	}

	return fmt.Sprintf(`regexReplaceAll %s %s "${1}"`, quote("(?s)^(.*)"+re.String()+"$"), c.value(name))
}

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

// withoutOuterStar drops the star at the far end of a shortest match: there it
// matches nothing, unless it is all there is.
func withoutOuterStar(glob []element, suffix bool) []element {
	if suffix && glob[0].kind == star {
		return glob[1:]
	}

	if last := len(glob) - 1; !suffix && glob[last].kind == star {
		return glob[:last]
	}

	return glob
}

// parseGlob reads a glob as drone/envsubst's package path does; it is not empty.
// False means that it is malformed, which there keeps it from ever matching.
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

		elements, glob = appendElement(elements, e), rest
	}

	return elements, true
}

// appendElement joins neighbours into one element where it can.
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

// parseClass reads a character class behind its "[" and returns it as a regular
// expression, and what follows the "]".
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
		return `[^\x00-\x{10FFFF}]`, glob[1:], true
	case negated:
		return "[^" + ranges.String() + "]", glob[1:], true
	}

	return "[" + ranges.String() + "]", glob[1:], true
}

// classRune reads a possibly escaped character of a class; something must follow.
func classRune(glob string) (r rune, rest string, ok bool) {
	if strings.HasPrefix(glob, "-") || strings.HasPrefix(glob, "]") {
		return 0, "", false
	}

	glob = strings.TrimPrefix(glob, `\`)
	r, size := utf8.DecodeRuneInString(glob)

	return r, glob[size:], len(glob) > size && (r != utf8.RuneError || size > 1)
}

// quoteClass returns a character as it stands in the class of a regular expression.
func quoteClass(r rune) string {
	if r < utf8.RuneSelf && strings.ContainsRune(`\]^-[`, r) {
		return `\` + string(r)
	}

	return string(r)
}

// reverse returns the characters of text in opposite order, as drone/envsubst does.
func reverse(text string) string {
	runes := []rune(text)
	slices.Reverse(runes)

	return string(runes)
}

// reversed returns a glob for the reversed text; patterns are not for it.
func reversed(glob []element) []element {
	out := make([]element, 0, len(glob))
	for _, e := range slices.Backward(glob) {
		out = append(out, element{e.kind, reverse(e.text)})
	}

	return out
}
