package chartgen_test

import (
	"encoding/binary"
	"strings"
	"unicode/utf16"
)

// values returns values of the variables.
func (r *random) values() map[string]string {
	values := map[string]string{"FIRST": "1", "SECOND": "two", "THIRD": "3"}

	for _, name := range []string{"FIRST", "SECOND", "THIRD"} {
		if r.choose(3) < 2 {
			continue
		}

		values[name] = r.one("value", "", "{{ fail \"rendered\" }}", `it's "quoted"`, "first\nsecond", "key: value",
			"- item", "12", "true", "null", "1e3", "0755", "~", " spaces ", "$HOME ${FIRST} $$", `\n\t\`, "größe→✓",
			"# comment", "<no value>", "\n  injected: yes", "&a *b |", "a\r\nb", strings.Repeat("long ", 100), "[", "%",
			"\u2028", "{{- \"", "tab\t", "a\n---\nb", "---", "a\n--- # b\nkind: ConfigMap\n", "\n---", "\n...\nc: d", "...",
			"\ufeff", "a\r\n---\r\nb", "\x00", "\xff", "\x7f", "\u2029\u0085", "nginx", "docker.io/a/b:v1", "A", "]}", "'",
			"!!binary x", "*", "&", "? a", "a: &anchor b", "<no ", "-", ":", "0x1F", ".inf", "2001-01-01", "1_000", "=", "<<")
	}

	// A CRD always has the defaults of its variables.
	values["IN_CRD"] = r.one("from a value", "12")

	return values
}

// utf16Text returns a text in UTF-16 with a byte order mark.
func utf16Text(order binary.AppendByteOrder, text string) string {
	var encoded []byte
	for _, unit := range utf16.Encode([]rune("\ufeff" + text)) {
		encoded = order.AppendUint16(encoded, unit)
	}

	return string(encoded)
}
