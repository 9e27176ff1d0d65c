package blockyaml

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/test/testproviders"
)

// understood are texts in the style of this package, by what is special about them.
var understood = map[string]string{
	"maps in maps":                 "a:\n  b:\n    c: d\n  e: f\ng: h\n",
	"lists with and without space": "a:\n- b\n- c\nd:\n  - e\n  -   f\n",
	"maps and lists in lists":      "a:\n- b: c\n  d:\n  - e\n- - f\n  - g: h\n    i: j\n",
	"empty values":                 "a:\nb:\n  c:\nd: {}\ne: []\nf: null\n",
	"comments and empty lines":     "# a\nb: c\n\n  # d\ne:\n\n# f\n  g: h\n",
	"numbers and booleans":         "a: 0\nb: -12\nc: 1000000\nd: true\ne: false\n",
	"strings that look otherwise":  "a: 10m\nb: 50%\nc: --x=y\nd: v1.2\ne: .spec.x\nf: 0 12 * * *\ng: ^(a)?$\nh: -E\n",
	"texts of several lines":       "a: one\n  two\n\n\n  three\nb: x\n",
	"single quotes":                "a: 'it''s: # {}'\nb: 'one\n  two\n\n  three'\n",
	"double quotes":                "a: \"x \\\" \\n \\\\ y\"\nb: \"one\n  two \\\n  \\ three\"\n",
	"literals":                     "a: |\n  one\n    two\n\n  # three\nb: |-\n  four\n\nc:\n- |\n  five\n",
	"characters outside of ASCII":  "a: größe→✓\nb: 'é'\nc: |\n  ü\n",
	"the last of two equal keys":   "a: b\na: c\n",
}

// TestParse: the result is that of the library.
func TestParse(t *testing.T) {
	for name, text := range understood {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(equal(t, text)).To(BeTrue(), "not understood")
		})
	}
}

// TestParseLeavesToLibrary: texts in any other style, valid or not, are left to the library.
func TestParseLeavesToLibrary(t *testing.T) {
	for _, text := range []string{
		"", "# a\n", "a", "a: b", "- a\n", "  a: b\n", "\"a\": b\n", "? a\n", "1: a\n", "null: a\n", "yes: a\n", "<<: a\n",
		"a: [b]\n", "a: {b: c}\n", "a: &b c\n", "a: *b\n", "a: !!str b\n", "a: b # c\n", "a: b: c\n", "a: b:\n", "a:\tb\n",
		"a: yes\n", "a: 010\n", "a: 1.5\n", "a: 1e3\n", "a: 0x1f\n", "a: 1_0\n",
		"a: .inf\n", "a: -inf\n", "a: -.inf\n", "a: --\n", "a: ~\n", "a: 9007199254740993\n",
		"a: >\n  b\n", "a: |2\n    b\n", "a: |+\n  b\n\n", "a: |\nb: c\n", "a: |\n    b\n  c\n", "a: |\n    \n  b\n",
		"a: 'b\n", "a: 'b'c\n", "a: \"\\x41\"\n", "a: \"b\\ \n  c\"\n", "a: b\n  # c\n  d\n", "a:\n  b\n", "a: b\n  c: d\n",
		"a:\n  b: c\n d: e\n", "a:\n- b: c\n   d: e\n", "a: b\r\n", "a: \u0085\n", "a: \xff\n", "a: \x00\n",
		"a:\n-\n  b\n", "a: b\n...\n", "a: %b\n", "a: `b\n", "\ufeffa: b\n", strings.Repeat("- ", 200) + "a\n",
	} {
		_, ok := Parse(text)
		NewWithT(t).Expect(ok).To(BeFalse(), "%q", text)
	}
}

// TestUnmarshal: the library parses what this package does not understand.
func TestUnmarshal(t *testing.T) {
	g := NewWithT(t)

	g.Expect(Unmarshal("a: b\n")).To(Equal(map[string]any{"a": "b"}))
	g.Expect(Unmarshal("a: [b, 1.5]")).To(Equal(map[string]any{"a": []any{"b", 1.5}}))
	g.Expect(Unmarshal("# a\n")).To(BeNil())

	_, err := Unmarshal("a: [b\n")
	g.Expect(err).To(MatchError(ContainSubstring("line 1")))
}

// TestParseProviders: most documents of real providers are understood.
func TestParseProviders(t *testing.T) {
	files, err := testproviders.Glob(t, "*/*/*-components.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	understood, documents := 0, 0

	for _, file := range files {
		text, err := os.ReadFile(file)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())

		for document := range strings.SplitSeq(string(text), "\n---\n") {
			documents++

			if equal(t, document+"\n") {
				understood++
			}
		}
	}

	NewWithT(t).Expect(understood).To(BeNumerically(">=", documents*9/10))
}

// FuzzParse compares arbitrary texts.
func FuzzParse(f *testing.F) {
	for _, text := range understood {
		f.Add(text)
	}

	f.Fuzz(func(t *testing.T, text string) { equal(t, text) })
}

// equal reports whether a text is understood, and fails if the library returns anything else.
func equal(t *testing.T, text string) bool {
	t.Helper()

	got, ok := Parse(text)
	if !ok {
		return false
	}

	var want map[string]any

	NewWithT(t).Expect(yaml.Unmarshal([]byte(text), &want)).To(Succeed(), "%q", text)
	NewWithT(t).Expect(got).To(Equal(want), "%q", text)

	return true
}
