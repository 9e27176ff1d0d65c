package expr

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// TestLiteral: Helm renders a literal to exactly the same text.
func TestLiteral(t *testing.T) {
	for _, text := range []string{
		"", "{", "{{", "{{{", "{{{{ .Values.a }}}}", "a{{- b -}}c", "{{/* a */}}", "`{{`", "\"{{\\\"}}", "{ {\n{\n", "}}",
		" \n\t{{ ", "{{ define \"a\" }}{{ end }}",
	} {
		var b strings.Builder

		writeLiteral(&b, text)
		NewWithT(t).Expect(renderFile(b.String(), nil)).To(Equal(text))
	}
}
