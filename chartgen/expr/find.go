package expr

import (
	"fmt"
	"iter"
	"strings"
	"unicode"
)

// found is an escaped dollar sign or an expression in a text, from start to end.
type found struct {
	start, end int
	// written is its size and that of the expressions in it, each of which counts for all that contain it, in bytes. It
	// is 0 for a dollar sign.
	written int
	depth   int  // of expressions in it, and 1 for itself
	open    bool // it has no end
}

// isExpression reports whether it is no dollar sign.
func (f *found) isExpression() bool { return f.written > 0 }

// check returns an error unless the expression was found whole.
func (f *found) check() error {
	switch {
	case f.open:
		return fmt.Errorf("missing closing brace: %s", toWrite)
	case f.depth > maxDepth:
		return fmt.Errorf("%w: more than %d expressions contain each other", errUnsupported, maxDepth)
	}

	return nil
}

// find iterates over the expressions of a text that are not in others and, unless the text is a default, over its
// escaped dollar signs. It reads each byte once.
func find(text string, escapes bool) iter.Seq[found] {
	return func(yield func(found) bool) {
		for at := 0; at < len(text); {
			next := strings.IndexByte(text[at:], '$')
			if next < 0 {
				return
			}

			at += next
			f := found{start: at, end: at + 1}

			switch {
			case strings.HasPrefix(text[at:], "${"):
				f = expressionAt(text, at)
			case escapes && strings.HasPrefix(text[at:], "$$"):
				f.end++
			default:
				at++
				continue
			}

			if !yield(f) {
				return
			}

			at = f.end
		}
	}
}

// expressionAt returns the expression that begins at an offset, as drone/envsubst reads it: a brace closes the one that
// was opened last. It ends early if too many contain each other.
func expressionAt(text string, start int) found {
	type opened struct {
		at      int
		escapes bool // it may have escaped dollar signs
	}

	f := found{start: start, end: len(text), written: len(text) - start, open: true}
	inside := make([]opened, 0, maxDepth+1) // those without an end, outermost first
	written := 0

	for at := start; at < len(text); {
		switch {
		case strings.HasPrefix(text[at:], "${"):
			inside = append(inside, opened{at: at, escapes: isReplacement(text[at:])})
			f.depth = max(f.depth, len(inside))
			at += len("${")

			if f.depth > maxDepth {
				f.end, f.open = at, false

				return f
			}
		case text[at] == '}':
			at++
			last := inside[len(inside)-1]
			inside = inside[:len(inside)-1]
			written += at - last.at

			if len(inside) == 0 {
				f.end, f.written, f.open = at, written, false

				return f
			}
		case inside[len(inside)-1].escapes && strings.HasPrefix(text[at:], "$$"):
			at += len("$$")
		default:
			at++
		}
	}

	return f
}

// isReplacement reports whether an expression is of a form in which drone/envsubst knows escaped dollar signs.
func isReplacement(expression string) bool {
	inName := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

	return strings.HasPrefix(strings.TrimLeftFunc(expression[len("${"):], inName), "/")
}
