// Package blockyaml parses the YAML that controller-gen and kustomize write: maps and lists in block
// style with simple scalars, which is most of what providers publish. It is several times as fast as a
// YAML library. It understands nothing else, and leaves all other YAML, and all errors, to a library.
//
// It saves a third of the CPU time of `capstan chart build`: Cluster API's components of 1.2 MB take 72
// instead of 116 ms.
package blockyaml

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// maxDepth is the maximum depth of lists and maps in each other.
const maxDepth = 100

// Unmarshal parses an object in any style of YAML, with the library if necessary. The result is that of
// sigs.k8s.io/yaml without its error with byte order marks, or nil if the text contains only comments. Strings
// may share the memory of the text.
func Unmarshal(text string) (object map[string]any, err error) {
	if object, ok := Parse(text); ok {
		return object, nil
	}

	if !HasMark(text) {
		err = yaml.Unmarshal([]byte(text), &object)

		return object, err
	}

	data, err := ToJSON(text)
	if err != nil {
		return nil, err
	}

	err = json.Unmarshal(data, &object)

	return object, err
}

// Parse parses an object. The result is that of sigs.k8s.io/yaml: numbers are float64. Strings share the
// memory of the text. It reports false if the text is not in the style of this package.
func Parse(text string) (object map[string]any, ok bool) {
	if !strings.HasSuffix(text, "\n") || !isPrintable(text) {
		return nil, false
	}

	p := &parser{rest: text}
	p.next()

	if p.end || p.column != 0 {
		return nil, false
	}

	object = p.mapping(0, 0)

	return object, p.end && !p.failed
}

// isPrintable reports whether the text is UTF-8 without control characters, tabs, and characters that
// YAML treats as line breaks.
func isPrintable(text string) bool {
	for i := 0; i < len(text); {
		c := text[i]

		if c < utf8.RuneSelf {
			if c < ' ' && c != '\n' || c == 0x7f {
				return false
			}

			i++

			continue
		}

		r, size := utf8.DecodeRuneInString(text[i:])

		switch {
		case r == utf8.RuneError, r < 0xa0, r == '\u2028', r == '\u2029', r == '\ufeff', r == 0xfffe, r == 0xffff:
			return false
		}

		i += size
	}

	return true
}

// parser reads a text line by line.
type parser struct {
	// rest is the text after the current line.
	rest string
	// column and line are the indentation of the current line, and the line without it. Neither is
	// defined at the end of the text.
	column int
	line   string
	end    bool
	// failed reports whether the text is not in the style of this package.
	failed bool
}

// next reads the next line that is neither empty nor a comment.
func (p *parser) next() {
	for p.rest != "" {
		p.column, p.line = p.cutLine()

		if p.line != "" && p.line[0] != '#' {
			return
		}
	}

	p.end = true
}

// cutLine cuts the next line off the rest of the text. It returns its indentation, and the line without
// it and without spaces at its end.
func (p *parser) cutLine() (column int, line string) {
	whole, rest, _ := strings.Cut(p.rest, "\n")
	p.rest = rest

	text := strings.TrimLeft(whole, " ")
	line = strings.TrimRight(text, " ")

	// A space at the end of a line may follow the backslash that makes it part of a text.
	if line != text && line != "" && line[len(line)-1] == '\\' {
		p.fail()
	}

	return len(whole) - len(text), line
}

// fail gives up. Its value is a placeholder.
func (p *parser) fail() any {
	p.failed = true

	return nil
}

// collection parses the map or list that begins with the current line.
func (p *parser) collection(depth int) any {
	switch {
	case depth > maxDepth:
		return p.fail()
	case strings.HasPrefix(p.line, "- "):
		return p.list(p.column, depth)
	default:
		return p.mapping(p.column, depth)
	}
}

// mapping parses the map at a column. It begins with the current line.
func (p *parser) mapping(column, depth int) map[string]any {
	object := map[string]any{}

	for !p.failed && !p.end && p.column == column {
		key, value, ok := cutKey(p.line)
		if !ok {
			p.fail()
			break
		}

		object[key] = p.value(value, column, depth)
	}

	// The next line belongs to a collection further out, or to none.
	p.failed = p.failed || !p.end && p.column > column

	return object
}

// value parses the value of a key at a column. It begins with the text after the colon.
func (p *parser) value(text string, column, depth int) any {
	if text != "" {
		return p.scalar(text, column)
	}

	p.next()

	switch {
	case p.end:
		return nil
	case p.column > column, p.column == column && strings.HasPrefix(p.line, "- "):
		return p.collection(depth + 1)
	default:
		return nil
	}
}

// list parses the list at a column. It begins with the current line.
func (p *parser) list(column, depth int) any {
	list := []any{}

	for !p.failed && !p.end && p.column == column && strings.HasPrefix(p.line, "- ") {
		item := strings.TrimLeft(p.line[2:], " ")

		if _, _, isMap := cutKey(item); isMap || strings.HasPrefix(item, "- ") {
			// The item is a collection at the column of its first key.
			p.column += len(p.line) - len(item)
			p.line = item
			list = append(list, p.collection(depth+1))
		} else {
			list = append(list, p.scalar(item, column))
		}
	}

	p.failed = p.failed || !p.end && p.column > column

	return list
}

// cutKey cuts a line after its key and colon. It reports false if the line does not begin with a simple
// key, which is a string in any YAML.
func cutKey(line string) (key, value string, ok bool) {
	end := 0
	for end < len(line) && isKey(line[end]) {
		end++
	}

	if end == 0 || end > 256 || end == len(line) || line[end] != ':' || !isText(line[:end]) {
		return "", "", false
	}

	key, value = line[:end], line[end+1:]
	if value != "" && value[0] != ' ' {
		return "", "", false
	}

	return key, strings.TrimLeft(value, " "), true
}

// isKey reports whether a byte may be part of a simple key.
func isKey(c byte) bool {
	return isLetter(c) || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' || c == '/' || c == '$'
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
