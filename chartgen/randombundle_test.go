package chartgen_test

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// randomBundle generates the components of a provider and values of their variables. Each byte of the
// recipe makes one choice; the choices that follow its end are the first ones.
func randomBundle(recipe []byte) (components string, values map[string]string) {
	r := &random{recipe: recipe}

	for n := r.choose(6) + 1; n > 0; n-- {
		r.document()
	}

	return r.encoded(), r.values()
}

// random writes a random components file.
type random struct {
	recipe []byte
	out    strings.Builder
	count  int // of documents
	// inCRD reports whether a CRD is being written, which has variables of its own.
	inCRD bool
}

func (r *random) choose(n int) int {
	if len(r.recipe) == 0 {
		return 0
	}

	choice := int(r.recipe[0]) % n
	r.recipe = r.recipe[1:]

	return choice
}

func (r *random) one(of ...string) string { return of[r.choose(len(of))] }

// rarely reports true once in sixteen times.
func (r *random) rarely() bool { return r.choose(16) == 15 }

// Content of documents: maps keep their order, a string is written in any style, and a plain text as it
// is.
type (
	entry struct {
		key   string
		value any
	}
	object []entry
	list   []any
	plain  string
)

// document writes a document with its separator.
func (r *random) document() {
	r.count++

	separator := r.one("---\n", "---\n", "--- # next\n", "---  \n", "---\n# only a comment\n---\n", "---\n\n")
	r.out.WriteString(separator)

	// clusterctl's parser skips a byte order mark only at the beginning of a document after the first.
	if r.count > 1 && separator == "---\n" && r.rarely() {
		r.out.WriteString("\ufeff")
	}

	content := r.content()
	r.inCRD = content[1].value == plain("CustomResourceDefinition")

	r.comment(0)

	if r.rarely() {
		content = append(content[1:], content[0])
	}

	if r.rarely() {
		r.flow(content)
		r.out.WriteString("\n")
	} else {
		r.block(content, 0)
	}

	r.inCRD = false
	r.out.WriteString(r.one("", "", "\n", "\n\n", "...\n", "# end\n"))
}

// encoded returns the file in an encoding.
func (r *random) encoded() string {
	text := r.out.String()

	switch r.choose(32) {
	case 26, 27:
		return strings.ReplaceAll(text, "\n", "\r\n")
	case 28:
		return strings.TrimRight(text, "\n")
	case 29:
		return text + r.one("\xff", "\x00", "\t", "\u0085", "%YAML 1.2\n", "---- \n", "---", "\ufeff", "...", "\r")
	case 30:
		return utf16Text(binary.LittleEndian, text)
	case 31:
		return utf16Text(binary.BigEndian, text)
	}

	return text
}

// comment writes a comment line, or none.
func (r *random) comment(indent int) {
	if r.rarely() {
		text := r.one("a", "{{ b }}", "---") + " " + r.variable()
		fmt.Fprintf(&r.out, "%s# %s\n", strings.Repeat(" ", indent+r.choose(3)), text)
	}
}

// variable returns an expression.
func (r *random) variable() string {
	if r.inCRD {
		return r.one("${IN_CRD:=one}", "$${IN_CRD}", "${IN_CRD:-two}", "$", "${IN_CRD^^}", "${IN_CRD:=${IN_CRD_2:=two}}")
	}

	return r.one("${FIRST:=one}", "${FIRST}", "${SECOND:-two}", "$${FIRST}", "${SECOND}", "$$", "${THIRD:=\"3\"}",
		"${ FIRST }", "${THIRD/a/b}", "${FIRST^^}", "${SECOND:=a {{ b }}}")
}

// block writes a map in block style.
func (r *random) block(content object, indent int) {
	for _, e := range content {
		r.comment(indent)
		r.out.WriteString(strings.Repeat(" ", indent) + r.key(e.key, indent) + ":")
		r.value(e.value, indent)
	}
}

// key returns a key at an indentation, in one of its styles.
func (r *random) key(key string, indent int) string {
	if strings.ContainsAny(key, " :{$#\n") {
		return quote(key)
	}

	switch r.choose(16) {
	case 13:
		return quote(key)
	case 14:
		return "'" + key + "'"
	case 15:
		return "? " + key + "\n" + strings.Repeat(" ", indent)
	}

	return key
}

func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) + `"`
}

// value writes what follows a key or the indicator of an item at an indentation.
func (r *random) value(value any, indent int) {
	if r.rarely() {
		switch value := value.(type) {
		case object, list:
			r.out.WriteString(" ")
			r.flow(value)
			r.out.WriteString(r.one("\n", " # c\n"))

			return
		}
	}

	switch value := value.(type) {
	case object:
		if len(value) == 0 {
			r.out.WriteString(" {}\n")
			return
		}

		r.out.WriteString(r.one("\n", "\n", " # c\n", " &map\n", " !!map\n"))
		r.block(value, indent+2+2*r.choose(2))
	case list:
		if len(value) == 0 {
			r.out.WriteString(" []\n")
			return
		}

		r.out.WriteString("\n")
		r.items(value, indent+2*r.choose(2))
	case plain:
		r.out.WriteString(" " + string(value) + r.one("\n", "\n", " # c\n"))
	case string:
		r.scalar(value, indent)
	}
}

func (r *random) items(items list, indent int) {
	for _, item := range items {
		r.comment(indent)
		r.out.WriteString(strings.Repeat(" ", indent) + "-")

		if content, ok := item.(object); ok && len(content) > 0 {
			// The first key follows the indicator, or the line break after it.
			r.out.WriteString("\n")
			r.block(content, indent+2)
		} else {
			r.value(item, indent)
		}
	}
}

// scalar writes a text in any style. The style may change the text.
func (r *random) scalar(text string, indent int) {
	inner := "\n" + strings.Repeat(" ", indent+2)

	switch style := r.choose(9); style {
	case 0, 1:
		r.out.WriteString(" " + quote(text) + "\n")
	case 2:
		r.out.WriteString(" '" + strings.ReplaceAll(strings.ReplaceAll(text, "'", "''"), "\n", "\n"+inner) + "'\n")
	case 3:
		// A number or boolean where a string belongs is a mistake that the API server reports.
		if len(text) > 4 && !strings.ContainsAny(text, "#:{}[]&*!|>'\"%@`\n-?,\\ $") {
			r.out.WriteString(" " + text + "\n")
		} else {
			r.out.WriteString(" " + quote(text) + r.one("\n", " # c\n"))
		}
	case 4:
		r.out.WriteString(" !!str " + quote(text) + "\n")
	case 5:
		r.out.WriteString(" \"" + strings.ReplaceAll(strings.Trim(quote(text), `"`), " ", " \\"+inner) + "\"\n")
	default:
		header := []string{"|", ">", "|"}[style-6] + r.one("", "-", "+")
		if r.rarely() {
			header += "2"
		}

		r.out.WriteString(" " + header + r.one("", " # c"))
		r.out.WriteString(inner + strings.ReplaceAll(text, "\n", r.one(inner, "\n"+inner, inner+"  ")))
		r.out.WriteString(r.one("\n", "\n\n", " \n", "\n\n   \n"))
	}
}

// flow writes a value in flow style.
func (r *random) flow(value any) {
	switch value := value.(type) {
	case object:
		r.out.WriteString("{")

		for i, e := range value {
			r.out.WriteString(strings.Repeat(", ", min(i, 1)) + quote(e.key) + ": ")
			r.flow(e.value)
		}

		r.out.WriteString("}")
	case list:
		r.out.WriteString("[")

		for _, item := range value {
			r.flow(item)
			r.out.WriteString(r.one(", ", ",\n  "))
		}

		r.out.WriteString("]")
	case plain:
		r.out.WriteString(string(value))
	case string:
		r.out.WriteString(quote(value))
	}
}
