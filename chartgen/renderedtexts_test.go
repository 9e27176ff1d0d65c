package chartgen

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen/bundle"
)

// TestNoByteIsLostUnnoticed: a chart that would not contain the published text is not built.
func TestNoByteIsLostUnnoticed(t *testing.T) {
	const components = "# first\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\n" +
		"data:\n  one: two\n  text: ${ODD:=<no value>}\n"

	for name, test := range map[string]struct{ old, replacement, message string }{
		"equal text": {"", "", ""},
		"lost words": {
			"<no value>", "", "components.yaml line 8: Helm would render ConfigMap config differently from here on: " +
				`"" instead of "<no value>"`,
		},
		"a lost line break": {
			"\n{{ end }}", "{{ end }}", "components.yaml line 8: Helm would render ConfigMap config differently from here on: " +
				`"" instead of ""`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			parsed, err := bundle.ParseComponents([]byte(components))
			g.Expect(err).NotTo(HaveOccurred())

			doc := &parsed.Documents[0]
			define := defineText(doc, "a")
			g.Expect(define).To(ContainSubstring(test.old))

			var texts renderedTexts

			g.Expect(texts.add(doc, "a", strings.Replace(define, test.old, test.replacement, 1))).To(Succeed())
			err = texts.check()

			if test.message == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}

			g.Expect(err).To(MatchError(test.message))
		})
	}
}
