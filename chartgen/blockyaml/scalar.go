package blockyaml

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// scalar parses a scalar that begins in the current line with the given text. It is part of the
// collection at a column, so its other lines are indented deeper. The next line becomes the current one.
func (p *parser) scalar(text string, column int) any {
	var value any

	switch {
	case text == "":
		return p.fail()
	case text == "{}":
		value = map[string]any{}
	case text == "[]":
		value = []any{}
	case text[0] == '|':
		value = p.literal(text[1:], column)
	case text[0] == '\'':
		value = p.singleQuoted(text[1:], column)
	case text[0] == '"':
		value = p.doubleQuoted(text[1:], column)
	default:
		value = p.plain(text, column)
	}

	p.next()

	return value
}

// continuation cuts off the next line of a scalar with several lines, if it is indented deeper than a
// column. It returns what the line break before it means: a space, or as many line feeds as there are
// empty lines.
func (p *parser) continuation(column int) (lineBreak, line string, ok bool) {
	ahead := *p

	for ahead.rest != "" {
		own, line := ahead.cutLine()
		if line == "" {
			lineBreak += "\n"
			continue
		}

		if own <= column {
			break
		}

		*p = ahead

		return cmp.Or(lineBreak, " "), line, true
	}

	return "", "", false
}

// plain parses a scalar without quotes.
func (p *parser) plain(text string, column int) any {
	if !isPlain(text) {
		return p.fail()
	}

	lineBreak, line, ok := p.continuation(column)
	if !ok {
		return p.resolve(text)
	}

	joined := []byte(text)

	// A comment ends the scalar.
	for ok && line[0] != '#' {
		if !isPlain("a" + line) {
			return p.fail()
		}

		joined = append(append(joined, lineBreak...), line...)
		lineBreak, line, ok = p.continuation(column)
	}

	return p.resolve(string(joined))
}

// isPlain reports whether a line of a scalar without quotes contains no indicator of YAML.
func isPlain(line string) bool {
	negative := len(line) > 1 && line[0] == '-' && line[1] != ' '

	return (negative || strings.IndexByte("-?:,[]{}#&*!|>'\"%@`~<=+", line[0]) < 0) &&
		!strings.HasSuffix(line, ":") && !strings.Contains(line, ": ") && !strings.Contains(line, " #")
}

// words are the texts that are not strings in some version of YAML.
var words = []string{"y", "yes", "on", "n", "no", "off", "true", "false", "null", "nan", "inf", "infinity"}

// notInNumbers are characters that no number contains, in any of the bases of YAML.
const notInNumbers = "ghijklmnpqrstuvwyzGHIJKLMNPQRSTUVWYZ /%"

// isText reports whether a scalar without quotes is a string in any version of YAML.
func isText(text string) bool {
	switch c := text[0]; {
	case isLetter(c):
		return len(text) > 8 || !slices.Contains(words, strings.ToLower(text))
	case c == '.':
		return len(text) > 4 && isLetter(text[1])
	case c == '-':
		// Flags such as -v and --v=2, but not -inf.
		name := strings.TrimPrefix(text[1:], "-")
		return name != "" && isLetter(name[0]) && isText(name)
	case c >= '0' && c <= '9':
		return strings.ContainsAny(text, notInNumbers)
	default:
		return c >= utf8.RuneSelf || strings.IndexByte(`/_$^(\`, c) >= 0
	}
}

// resolve returns the value of a scalar without quotes.
func (p *parser) resolve(text string) any {
	switch {
	case isText(text):
		return text
	case text == "true":
		return true
	case text == "false":
		return false
	case text == "null":
		return nil
	case isInteger(text):
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return p.fail()
		}

		return value
	}

	return p.fail()
}

// isInteger reports whether a text is a decimal integer in any version of YAML, and not too large to be
// exact.
func isInteger(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	if digits == "" || len(digits) > 15 || digits[0] == '0' && text != "0" {
		return false
	}

	return strings.Trim(digits, "0123456789") == ""
}

// singleQuoted parses the rest of a scalar in single quotes.
func (p *parser) singleQuoted(text string, column int) any {
	var value strings.Builder

	for {
		before, after, found := strings.Cut(text, "'")
		value.WriteString(before)

		switch {
		case found && after == "":
			return value.String()
		case found && after[0] == '\'':
			text = after[1:]

			value.WriteByte('\'')
		case found:
			return p.fail()
		default:
			lineBreak, line, ok := p.continuation(column)
			if !ok {
				return p.fail()
			}

			text = line

			value.WriteString(lineBreak)
		}
	}
}

// escapes are the characters that backslashes in double quotes represent, by the character that
// follows it.
var escapes = map[byte]byte{'n': '\n', 't': '\t', '"': '"', '\\': '\\', ' ': ' '}

// doubleQuoted parses the rest of a scalar in double quotes.
func (p *parser) doubleQuoted(text string, column int) any {
	var value strings.Builder

	for {
		end := strings.IndexAny(text, `"\`)

		switch {
		case end < 0 || text[end:] == `\`:
			lineBreak, line, ok := p.continuation(column)
			if !ok || end >= 0 && lineBreak != " " {
				return p.fail()
			}

			// A backslash before a line break hides it.
			if end >= 0 {
				value.WriteString(text[:end])
			} else {
				value.WriteString(text + lineBreak)
			}

			text = line
		case text[end] == '"':
			value.WriteString(text[:end])

			if text[end+1:] != "" {
				return p.fail()
			}

			return value.String()
		default:
			escaped, known := escapes[text[end+1]]
			if !known {
				return p.fail()
			}

			value.WriteString(text[:end])
			value.WriteByte(escaped)

			text = text[end+2:]
		}
	}
}

// literal parses a block scalar by its header, without the |.
func (p *parser) literal(header string, column int) any {
	if header != "" && header != "-" {
		return p.fail()
	}

	var value strings.Builder

	indent := 0 // of the first line that is not empty
	empty := 0  // lines that belong to the text only if another line follows

	for p.rest != "" {
		line, rest, _ := strings.Cut(p.rest, "\n")
		own := len(line) - len(strings.TrimLeft(line, " "))
		isEmpty := own == len(line)

		if !isEmpty && own <= column {
			break
		}

		if !isEmpty && indent == 0 {
			indent = own
		}

		p.rest = rest

		switch {
		case isEmpty && own <= indent:
			empty++
		case isEmpty || own < indent:
			return p.fail()
		default:
			value.WriteString(strings.Repeat("\n", empty))
			value.WriteString(line[indent:])
			value.WriteByte('\n')

			empty = 0
		}
	}

	if value.Len() == 0 {
		return p.fail()
	}

	if header == "-" {
		return strings.TrimSuffix(value.String(), "\n")
	}

	return value.String()
}
