package limit_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/capstan-project/capstan/chartgen/limit"
	"github.com/capstan-project/capstan/test/testproviders"
)

func TestDocument(t *testing.T) {
	long := strings.Repeat("x", 1<<20)

	for name, test := range map[string]struct{ text, reason string }{
		"a list in brackets":       {"a: [" + strings.Repeat("1,", 110000) + "]", "100000 values"},
		"a list of lists":          {"a: [" + strings.Repeat("[],", 60000) + "]", "100000 values"},
		"a map in braces":          {"a: {" + strings.Repeat("b,", 110000) + "}", "100000 values"},
		"a list of dashes":         {strings.Repeat("-\n", 110000), "100000 values"},
		"dashes and tabs":          {strings.Repeat("-\t", 110000), "100000 values"},
		"dashes and other breaks":  {strings.Repeat("-\u2028", 110000), "100000 values"},
		"a list in a line":         {strings.Repeat("- ", 110000), "100000 values"},
		"a map":                    {strings.Repeat("a:\n", 110000), "100000 values"},
		"keys with question marks": {strings.Repeat("? a\n", 110000), "100000 values"},
		"a large text":             {"a: " + strings.Repeat("x", 4<<20), "larger than 4 MiB"},
		"UTF-16":                   {"\xff\xfea\x00", "UTF-16"},
		"aliases of aliases":       {aliases(9, "x"), "larger than 8 MiB once its aliases"},
		"aliases of a long text":   {"a: &a " + long + "\nb: [*a,*a,*a,*a,*a,*a,*a,*a]", "larger than 8 MiB once"},
		"aliases after other breaks": {
			"a: &a " + long + "\u2028b: [" + strings.Repeat("\u2028*a,", 9) + "]", "larger than 8 MiB once",
		},
		"merged maps": {
			"a: &a {x: " + long + "}\nb:\n" + strings.Repeat("- <<: *a\n", 9), "larger than 8 MiB once",
		},
		"an alias of itself":         {"a: &a [*a, *a]", "larger than 8 MiB once"},
		"merged maps of merged maps": {"a0: &a0 {x: y}\n" + merges(9), "excessive aliasing"},
		"aliases as keys": {
			"a: &a " + long + "\nb:\n" + strings.Repeat("- *a : 1\n", 9), "larger than 8 MiB once",
		},
		"aliases in a tagged map": {
			"a: &a " + long + "\nb: !!null {c: [*a,*a,*a,*a,*a,*a,*a,*a]}", "larger than 8 MiB once",
		},
		"maps as keys":          {"a: &a {b: c}\n*a : d\n", "a key is not a text"},
		"anchors and no YAML":   {"a: &a [*a", "not valid YAML"},
		"an unknown anchor":     {"a: &a b\nc: *d", "not valid YAML: unknown anchor 'd'"},
		"a text with * and &":   {"a: the &lt; of *.example.com", ""},
		"an anchor":             {"a: &a [1]\nb: *a\nc: *a", ""},
		"anchors of all types":  {"a: &a [~, 'null', !!str 1, 2.5, &b true]\n*b : *a\n1: {<<: &c {d: *b}}\ne: *c\n", ""},
		"a tab after the end":   {"a: &a b\nc: *a\n...\n\t\n", ""},
		"an object":             {"a: {b: [c]}\nd:\n- e", ""},
		"nothing":               {"", ""},
		"a list of 30000 names": {strings.Repeat("- name: a\n", 30000), ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := limit.Document(test.text)
			if test.reason == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}

			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.reason)))

			exceeded := (*limit.Error)(nil)
			isInvalid := strings.Contains(err.Error(), "not valid YAML")
			NewWithT(t).Expect(errors.As(err, &exceeded)).To(Equal(!isInvalid), "what quotes the document is no *Error")
		})
	}
}

// aliases returns a map whose last value consists of 9 to the given power of texts.
func aliases(levels int, text string) string {
	all := "a0: &a0 [" + text + "]\n"

	for level := range levels {
		before := string(rune('0' + level))
		after := string(rune('1' + level))
		all += "a" + after + ": &a" + after + " [" + strings.Repeat("*a"+before+",", 9) + "]\n"
	}

	return all
}

// merges returns maps of which each merges the one before nine times.
func merges(levels int) string {
	var all strings.Builder

	for level := range levels {
		before := fmt.Sprintf("*a%d", level)
		fmt.Fprintf(&all, "a%d: &a%[1]d {<<: [%s%s]}\n", level+1, strings.Repeat(before+",", 8), before)
	}

	return all.String()
}

// TestDocumentCountsEveryValue: no text has more than three times as many values as are counted.
func TestDocumentCountsEveryValue(t *testing.T) {
	for _, text := range []string{
		"- a\n- b\n-\r\n  d\n", "a: b\nc:\n  d: e\n", "? a\n? b\n: c\n", "[a,b,c]", "[[],[],{}]", "{a: b, c: d}",
		`{"a":"b","c":"d"}`, `["a":"b","c":"d"]`, "[?a,?b,? c]", "{?a,?b}", "- - - - a", "- a: b\n  c: d\n- e: f\n",
		"a: &x [b]\nc: *x\n", "--- {a: b}", "'a': 'b'\n\"c\": \"d\"\n", "a: b\u2028c: d\n", "!!map {? !!str a : !!int 1}",
	} {
		var decoded any
		NewWithT(t).Expect(yaml.Unmarshal([]byte(text), &decoded)).To(Succeed(), text)

		counted, err := limit.Document(text)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(values(decoded)).To(BeNumerically("<=", 3*counted.Values), text)
	}
}

// values returns the number of values of a decoded document, including keys.
func values(value any) int {
	total := 1

	switch value := value.(type) {
	case map[string]any:
		for _, child := range value {
			total += 1 + values(child)
		}
	case []any:
		for _, child := range value {
			total += values(child)
		}
	}

	return total
}

func TestDocuments(t *testing.T) {
	for name, test := range map[string]struct{ text, reason string }{
		"many documents":            {strings.Repeat("---\n", 2100), "more than 2000 documents"},
		"many values":               {strings.Repeat("a: ["+strings.Repeat("1,", 90000)+"]\n---\n", 4), "300000 values"},
		"a large document":          {"a: b\n---\nc: " + strings.Repeat("x", 5<<20), "number 2, that is larger than 4 MiB"},
		"a large file":              {strings.Repeat("a: "+strings.Repeat("x", 1<<20)+"\n---\n", 17), "larger than 16 MiB"},
		"an alias after a key ---b": {"a: &a " + strings.Repeat("x", 1<<20) + "\n---b: [*a,*a,*a,*a,*a,*a,*a,*a]", "aliases"},
		"aliases in documents": {
			strings.Repeat("a: &a "+strings.Repeat("x", 1<<20)+"\nb: [*a,*a,*a,*a,*a]\n---\n", 3),
			"number 3, that brings the total to more than 16 MiB",
		},
		"documents": {"a: b\n---\nc: d\n--- # e\nf: g\n---", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := limit.Documents(test.text)
			if test.reason == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}

			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.reason)))
		})
	}
}

// TestRealComponents: no real provider comes near the limits.
// TestTake: a budget can be used up, and not be exceeded.
func TestTake(t *testing.T) {
	for name, test := range map[string]struct {
		parts  []limit.Cost
		reason string
	}{
		"all at once":      {[]limit.Cost{{Size: 2 << 20, Values: 10}}, ""},
		"all in parts":     {[]limit.Cost{{Size: 1 << 20, Values: 3}, {Size: 1 << 20, Values: 7}}, ""},
		"a byte too much":  {[]limit.Cost{{Size: 2 << 20}, {Size: 1}}, "brings the total to more than 2 MiB"},
		"a value too much": {[]limit.Cost{{Values: 10}, {Values: 1}}, "brings the total to more than 10 values"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			budget := limit.NewBudget(2<<20, 10)

			for _, part := range test.parts[:len(test.parts)-1] {
				g.Expect(budget.Take(part)).To(Succeed())
			}

			err := budget.Take(test.parts[len(test.parts)-1])
			if test.reason == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}

			g.Expect(err).To(MatchError(test.reason))
		})
	}
}

func TestRealComponents(t *testing.T) {
	files, err := testproviders.Glob(t, "*/*/*.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	for _, file := range files {
		text, err := os.ReadFile(file)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())

		err = limit.Documents(string(text) + string(text))
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), file)
	}
}

func TestList(t *testing.T) {
	list := func(n int) []byte { return []byte("[" + strings.Repeat("{},", n) + "{}]") }

	NewWithT(t).Expect(limit.List(list(600), 1000)).To(MatchError("has more than 1000 values"))
	NewWithT(t).Expect(limit.List(list(400), 1000)).To(Succeed())
}

func TestDepth(t *testing.T) {
	nested := func(levels int) any {
		var value any
		NewWithT(t).Expect(yaml.Unmarshal([]byte(strings.Repeat("[{a: ", levels/2)+strings.Repeat("}]", levels/2)), &value)).
			To(Succeed())

		return value
	}

	NewWithT(t).Expect(limit.Depth(nested(100))).To(Succeed())
	NewWithT(t).Expect(limit.Depth(nested(102))).To(MatchError(ContainSubstring("100 levels")))
}
