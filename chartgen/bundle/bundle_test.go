package bundle

import (
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const object = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %\n"

func named(name string) string { return strings.Replace(object, "%", name, 1) }

func TestParseComponents(t *testing.T) {
	g := NewWithT(t)
	c, err := ParseComponents(
		[]byte("# a comment\n---\n" + named("one") + "---  # another\n\n---\n" + named("${TWO:=two}") + "---\n" +
			strings.Replace(named("three"), "ConfigMap", "Namespace", 1) + "--- \n" + named("${FOUR}")),
	)
	g.Expect(err).NotTo(HaveOccurred())

	var (
		names []string
		lines []int
	)
	for _, d := range c.Documents {
		names, lines = append(names, d.Object.GetName()), append(lines, d.Line)
	}

	g.Expect(names).To(Equal([]string{"one", "two", "three", Placeholder}))
	g.Expect(lines).To(Equal([]int{3, 10, 15, 20}))
	g.Expect(c.Namespace).To(Equal("three"))
	g.Expect(c.Variables).To(HaveLen(2))
}

func TestParseInvalidComponents(t *testing.T) {
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata: {name: %}\n"
	for name, test := range map[string]struct{ text, message string }{
		"nothing":       {"", "components.yaml: contains no object"},
		"only comments": {"# one\n---\n# two\n", "components.yaml: contains no object"},
		"YAML that does not parse": {
			named("one") + "---\napiVersion: v1\nkind: [ConfigMap\nmetadata:\n",
			"components.yaml line 7: not valid YAML",
		},
		"a list":      {"- one\n- two\n", "components.yaml line 1: not an object with apiVersion and kind"},
		"a key twice": {named("a") + "  name: b\n", "key \"name\" already set in map"},
		"an object without kind": {
			named("one") + "---\nmetadata: {name: two}\n",
			"components.yaml line 6: an object without apiVersion or kind",
		},
		"an object without a name": {
			"apiVersion: v1\nkind: Secret\n",
			"components.yaml line 1: a Secret without metadata.name",
		},
		"a List": {
			"apiVersion: v1\nkind: List\nitems: []\n",
			"components.yaml line 1: a List without metadata.name; write each of its items as a document of its own",
		},
		"text after the separator": {
			named("one") + "--- two\n",
			"components.yaml line 5: text after the document separator",
		},
		"an object after an end marker": {
			named("one") + "...\n" + named("two"), "components.yaml line 1: text follows the end of the document; remove it",
		},
		"text in the line of an end marker": {named("one") + "...# two\n", "line 1: text follows the end of the document"},
		"an expression over an end marker":  {named("one") + "# ${A:=\n...\n# }\n", "expression ${A:=: it extends into"},
		"two Namespaces": {
			strings.Replace(namespace, "%", "a", 1) + "---\n" + strings.Replace(namespace, "%", "b", 1),
			"components.yaml line 5: a second Namespace, b in addition to a",
		},
		"an expression left open": {
			named("one") + "---\n" + named("${TWO"),
			"components.yaml line 9: expression ${TWO",
		},
		"an expression over a border": {named("${ONE:=a\n---\nb}"), "components.yaml line 4: expression ${ONE:=a"},
		"an unreadable expression":    {named("${VAR$FOO}"), "components.yaml line 4: expression ${VAR$FOO}"},
		"UTF-16, little-endian": {"\xff\xfea\x00:\x00 \x00b\x00",
			"components.yaml: encoded in UTF-16; publish it in UTF-8"},
		"UTF-16, big-endian": {"\xfe\xff\x00a\x00:\x00 \x00b",
			"components.yaml: encoded in UTF-16; publish it in UTF-8"},
		"a NUL character": {named("one") + "# a\x00b\n", "components.yaml line 5: the text has a NUL character"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := ParseComponents([]byte(test.text))

			var invalid *InvalidError
			g.Expect(errors.As(err, &invalid)).To(BeTrue(), "%v", err)
			g.Expect(err.Error()).To(ContainSubstring(test.message))
		})
	}
}

func TestValuesCannotAddDocuments(t *testing.T) {
	g := NewWithT(t)
	c, err := ParseComponents([]byte(named("${NAME:=one}")))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Documents).To(HaveLen(1))
	expanded, err := c.Documents[0].Text.Expand(map[string]string{"NAME": "one\n---\n" + named("two")})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(expanded).To(ContainSubstring("---"), "the value remains text of one document")
}

func TestMetadata(t *testing.T) {
	series := "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\n" +
		"releaseSeries:\n- {major: 1, minor: 13, contract: v1beta2}\n- {major: 1, minor: 9, contract: v1beta1}\n"
	for name, test := range map[string]struct{ text, version, contract, message string }{
		"a listed series": {
			"kind: Metadata\n" + series,
			"v1.13.5",
			"v1beta2",
			"",
		},
		"an older series":            {series, "v1.9.0", "v1beta1", ""},
		"a pre-release":              {series, "v1.13.0-rc.1", "v1beta2", ""},
		"no kind, as k0smotron's":    {series, "v1.13.5", "v1beta2", ""},
		"a series that is not there": {series, "v2.13.5", "", "metadata.yaml: has no releaseSeries for 2.13"},
		"no series at all": {
			"apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\n",
			"v1.13.5",
			"",
			"metadata.yaml: lists no releaseSeries",
		},
		"another kind": {
			"kind: Provider\n" + series,
			"v1.13.5",
			"",
			`metadata.yaml: has apiVersion "clusterctl.cluster.x-k8s.io/v1alpha3" and kind "Provider", expected`,
		},
		"no contract": {
			series + "- {major: 1, minor: 8}\n", "v1.8.2", "", "metadata.yaml: gives no contract for the series 1.8",
		},
		"a contract that is a number": {
			series + "- {major: 1, minor: 8, contract: 1}\n", "v1.8.2", "",
			"metadata.yaml: releaseSeries.contract cannot be a number",
		},
		"no YAML": {"a: b: c\n", "v1.13.5", "", "metadata.yaml: not valid YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m, err := ParseMetadata([]byte(test.text))

			contract := ""
			if err == nil {
				contract, err = Contract(m, test.version)
			}

			if test.message != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.message)))
				return
			}

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(contract).To(Equal(test.contract))
		})
	}
}

// TestParseTemplateWithLines: an expression that is alone on its line is left out if the template is not valid with it,
// with a variable in its default, too.
func TestParseTemplateWithLines(t *testing.T) {
	for _, line := range []string{"${LINES}", "${LINES:=}", "${LINES:=${OTHERS}}"} {
		parsed, err := ParseTemplate([]byte(named("one") + "data:\n  a: b\n" + line + "\n"))
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), line)
		NewWithT(t).Expect(parsed.Documents).To(HaveLen(1))
	}
}
