package object

import (
	"fmt"
	"strings"
	"unicode"
)

// Printable returns the text with a space in place of each control character and without characters
// that change the direction of text. Servers and components are quoted in messages, which must not
// control the terminal of a reader, nor begin a line of their own.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), r == '\u2028', r == '\u2029':
			return ' '
		case unicode.Is(unicode.Bidi_Control, r):
			return -1
		}

		return r
	}, text)
}

// OneLine returns the text on one line, with single spaces between its words. It cuts a text that
// is longer than limit bytes and marks the cut with an ellipsis.
func OneLine(text string, limit int) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= limit {
		return text
	}

	return strings.ToValidUTF8(text[:limit], "") + " …"
}

// List joins the items with commas and counts those beyond the limit: "a, b and 3 more".
func List(items []string, limit int) string {
	if len(items) <= limit {
		return strings.Join(items, ", ")
	}

	return fmt.Sprintf("%s and %d more", strings.Join(items[:limit], ", "), len(items)-limit)
}

// Count returns a number with its noun: "1 object", "2 objects".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}

	return fmt.Sprintf("%d %ss", n, noun)
}

// AndMore returns " (and 3 more)", to follow the one item of several that a message describes. It
// returns an empty string if there is no other.
func AndMore(others int) string {
	if others < 1 {
		return ""
	}

	return fmt.Sprintf(" (and %d more)", others)
}
