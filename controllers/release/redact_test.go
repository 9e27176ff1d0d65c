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
		"'s3cret' does not match pattern": "'…' does not match pattern",
		"other-secret and a s3cret":       "… and a …",
		"many\n  lines":                   "many lines",
		"YAML parse error on x/templates/a.yaml: error converting YAML to JSON: yaml: line 4: unknown anchor 's3cre'": "" +
			"YAML parse error on x/templates/a.yaml: not valid YAML with these values",
		"execution error at (x/templates/a.yaml:8:4): Secret a: remove the line break": "Secret a: remove the line break",
		`template: x/a.yaml:1:9: executing "x/a.yaml" at <.Values.v>: range can't iterate over s3cre`: "" +
			"template x/a.yaml fails with these values",
		`template: x/a.yaml:1:9: executing "x/a.yaml" at <"a>b">: range can't iterate over s3cre`: "" +
			"template x/a.yaml fails with these values",
		`template: x/a.yaml:1:9: executing "x/a.yaml" at <include "a" .>: error calling include: ` +
			`template: x/_a.tpl:1:9: executing "a" at <.v>: range can't iterate over s3cre`: "" +
			"template x/a.yaml fails with these values",
		"x/a.yaml:1:9\n  executing \"x/a.yaml\" at <include \"a\" .>:\n    error calling include:\n" +
			"x/_a.tpl:1:9\n  executing \"a\" at <.v>:\n    range can't iterate over s3cre": "" +
			"template x/a.yaml fails with these values",
		`template: x/a.yaml:1:9: executing "x/a.yaml" at <.Values.a.b>: nil pointer evaluating interface {}.b`: "" +
			`template: x/a.yaml:1:9: executing "x/a.yaml" at <.Values.a.b>: nil pointer evaluating interface {}.b`,
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
