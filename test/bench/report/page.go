package report

import (
	"fmt"
	"os"
	"strings"
)

// Replace returns a page with another text in one of its sections. A section begins after the line
// "<!-- begin NAME -->" and ends before the line "<!-- end NAME -->".
func Replace(page, name, text string) (string, error) {
	begin, end := "<!-- begin "+name+" -->", "<!-- end "+name+" -->"
	before, rest, begins := strings.Cut(page, begin)
	_, after, ends := strings.Cut(rest, end)

	if !begins || !ends || strings.Contains(after, begin) {
		return "", fmt.Errorf("it must have the line %s once, and after it the line %s", begin, end)
	}

	return before + begin + "\n\n" + strings.TrimSpace(text) + "\n\n" + end + after, nil
}

// Write replaces a section of the page in a file.
func Write(file, name, text string) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}

	changed, err := Replace(string(page), name, text)
	if err != nil {
		return fmt.Errorf("write to page %s: %w", file, err)
	}

	return os.WriteFile(file, []byte(changed), 0o644)
}
