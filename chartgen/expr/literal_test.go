package expr

import (
	"testing"

	. "github.com/onsi/gomega"
)

// TestLiteral: Helm renders a literal to exactly the same text.
func TestLiteral(t *testing.T) {
	for _, text := range []string{
		"", "{", "{{", "{{{", "{{{{ .Values.a }}}}", "a{{- b -}}c", "{{/* a */}}", "`{{`", "\"{{\\\"}}", "{ {\n{\n", "}}",
		"<no value>", "<no <no value>value>", "{{\"<no value>\"}}", " \n\t{{ ", "{{ define \"a\" }}{{ end }}",
	} {
		NewWithT(t).Expect(renderFile(Literal(text), nil)).To(Equal(text))
	}
}
