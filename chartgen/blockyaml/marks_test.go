package blockyaml

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// TestToJSON: the JSON has what is written, wherever a mark is in the buffer of the library, which reads
// 512 bytes at a time.
func TestToJSON(t *testing.T) {
	const rest = "a: \ufeffb\n# c: d\n\"\ufeffe\": |\n  \ufeff\n  # f\nnumber: 9007199254740993\n"

	for length := range 1030 {
		text := "# " + strings.Repeat("-", length) + "\n" + rest
		want := "{\"a\":\"\ufeffb\",\"number\":9007199254740993,\"\ufeffe\":\"\ufeff\\n# f\\n\"}"

		data, err := ToJSON(text)
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), "a comment of %d characters", length)
		NewWithT(t).Expect(string(data)).To(Equal(want), "a comment of %d characters", length)
	}
}

// TestToJSONWithoutMarks: nothing else changes.
func TestToJSONWithoutMarks(t *testing.T) {
	for text, want := range map[string]string{
		"a: \ufdd0\n":              "{\"a\":\"\ufdd0\"}",
		"\ufeffa: b\n":             `{"a":"b"}`,
		"\ufeff---\na: \ufdd0\n":   "{\"a\":\"\ufdd0\"}",
		"\ufeff# a\nb: \"\ufeff\"": "{\"b\":\"\ufeff\"}",
		"# a\n":                    "null",
	} {
		data, err := ToJSON(text)
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), "%q", text)
		NewWithT(t).Expect(string(data)).To(Equal(want), "%q", text)
	}

	_, err := ToJSON("a: [\ufeff\n")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("did not find expected")))
}
