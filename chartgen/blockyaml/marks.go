package blockyaml

import (
	"bytes"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	// mark is a byte order mark. The YAML library skips it at the beginning of a line, but looks for it at the
	// beginning of its buffer instead. If a mark inside of a text happens to be there, the library skips the first
	// character of the lines that follow, up to the end of the buffer: the comment "# a: b" becomes a field, and a
	// field that is not indented an error.
	mark = "\ufeff"
	// placeholder is a character that Unicode reserves for the internal use of programs, and that YAML allows.
	placeholder = "\ufdd0"
)

// HasMark reports whether a text contains a byte order mark.
func HasMark(text string) bool { return strings.Contains(text, mark) }

// HideMarks replaces each byte order mark with another character, except a mark at the beginning of the text, which is
// no part of it.
func HideMarks(text string) string {
	content, found := strings.CutPrefix(text, mark)
	hidden := strings.ReplaceAll(content, mark, placeholder)

	if found {
		return mark + hidden
	}

	return hidden
}

// ToJSON converts YAML to JSON like sigs.k8s.io/yaml without its error with byte order marks.
func ToJSON(text string) ([]byte, error) {
	hidden := HideMarks(text)

	data, err := yaml.YAMLToJSON([]byte(hidden))
	if err != nil || hidden == text {
		return data, err
	}

	return bytes.ReplaceAll(data, []byte(placeholder), []byte(mark)), nil
}
