package report

import (
	"fmt"
	"strings"
)

// Markers of the part of a page that Replace replaces.
const (
	BeginMarker = "<!-- The benchmark writes what follows. -->"
	EndMarker   = "<!-- The benchmark has written what precedes. -->"
)

// Replace returns a page with another text between its markers.
func Replace(page, text string) (string, error) {
	before, rest, begins := strings.Cut(page, BeginMarker)
	_, after, ends := strings.Cut(rest, EndMarker)

	if !begins || !ends || strings.Contains(after, BeginMarker) {
		return "", fmt.Errorf("the page must have the line %s once, and after it the line %s", BeginMarker, EndMarker)
	}

	return before + BeginMarker + "\n\n" + strings.TrimSpace(text) + "\n\n" + EndMarker + after, nil
}
