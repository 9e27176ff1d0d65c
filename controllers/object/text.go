package object

import (
	"fmt"
	"strings"
)

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

// AndMore returns " (and 3 more)", to follow the one item of several that a message describes. It
// returns an empty string if there is no other.
func AndMore(others int) string {
	if others < 1 {
		return ""
	}

	return fmt.Sprintf(" (and %d more)", others)
}
