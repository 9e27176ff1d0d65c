package chartgen_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/capstan-project/capstan/chartgen"
)

const (
	byteOrderMark = "\ufeff"

	configMapText = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\n"
	indented      = "  apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: config}\n"
)

// TestEachByteOfText: what a document says at its beginning and its end arrives, in any style.
func TestEachByteOfText(t *testing.T) {
	another := "---\n" + strings.Replace(configMapText, "name: config", "name: another", 1)

	for name, components := range map[string]string{
		"a block scalar":                           configMapText + "data:\n  script: |\n    echo\n",
		"a block scalar before another document":   configMapText + "data:\n  script: |\n    echo\n" + another,
		"a block scalar without a final newline":   configMapText + "data:\n  script: |\n    echo",
		"a block scalar that keeps newlines":       configMapText + "data:\n  script: |+\n    echo\n\n\n" + another,
		"a block scalar that strips newlines":      configMapText + "data:\n  script: |-\n    echo\n\n\n" + another,
		"a folded scalar":                          configMapText + "data:\n  script: >\n    echo\n    this\n",
		"a folded scalar that keeps newlines":      configMapText + "data:\n  script: >+\n    echo\n    this\n\n",
		"trailing spaces":                          configMapText + "data:\n  script: |\n    echo  \t \n",
		"a line of spaces":                         configMapText + "data:\n  script: |\n    echo\n      \n",
		"a block scalar of carriage returns":       configMapText + "data:\r\n  script: |\r\n    echo\r\n    this\r\n",
		"two carriage returns":                     configMapText + "data:\n  script: |\n    echo\r\r\n    this\n",
		"a carriage return without a newline":      configMapText + "data:\n  script: |\n    echo\r",
		"an expression at the end":                 configMapText + "data:\n  script: |\n    ${ODD:=echo}\n",
		"an expression without a final newline":    configMapText + "data:\n  script: |\n    ${ODD:=echo}",
		"an expression with line breaks":           configMapText + "data:\n  script: |+\n    ${ODD:=echo\n\n}",
		"braces at the end":                        configMapText + "data:\n  script: |\n    {{",
		"a byte order mark":                        byteOrderMark + configMapText,
		"a byte order mark before a comment":       byteOrderMark + "# comment\n" + configMapText,
		"a byte order mark before the separator":   byteOrderMark + "---\n" + configMapText,
		"a byte order mark in the second document": configMapText + "---\n" + byteOrderMark + another[len("---\n"):],
		"a byte order mark before an expression":   byteOrderMark + "# ${ODD:=comment}\n" + configMapText,
		"a byte order mark in a text":              configMapText + "data: {mark: \"" + byteOrderMark + "x\"}\n",
		"an indented document":                     "\n" + indented,
		"an indented document with an expression":  "  # ${ODD:=comment}\n" + indented,
	} {
		t.Run(name, func(t *testing.T) {
			b := provider("odd", components)
			built, err := chartgen.Build(b)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())

			compareOnce(t, "defaults", b, built, nil)
		})
	}
}
