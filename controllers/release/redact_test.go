package release

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestRedact(t *testing.T) {
	values := map[string]any{
		"variables": map[string]any{"TOKEN": "s3cret", "LIST": []any{"other-secret", "secret"}, "SHORT": "a"},
	}

	for message, want := range map[string]string{
		"'s3cret' does not match pattern":           "'…' does not match pattern",
		"cannot unmarshal !!str `s3cr...` into map": "cannot unmarshal !!str `…` into map",
		"other-secret and a s3cret":                 "… and a …",
		"many\n  lines":                             "many lines",
	} {
		NewWithT(t).Expect(redact(message, values)).To(Equal(want))
	}
}

func TestSchemaErrors(t *testing.T) {
	const preamble = "values don't meet the specifications of the schema(s) in the following chart(s):\naws:\n"

	for message, want := range map[string]string{
		preamble + "- at '/variables': missing properties 'B', 'A'\n- at '/a': got number, want string\n": "the values " +
			"do not match its schema: at '/a': got number, want string; at '/variables': missing properties 'A', 'B'",
		"template: x.yaml:1: it's odd - really": "template: x.yaml:1: it's odd - really",
	} {
		NewWithT(t).Expect(schemaErrors(message)).To(Equal(want))
	}
}
