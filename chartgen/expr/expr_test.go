package expr

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/yamlprocessor"
)

func TestVariables(t *testing.T) {
	text, err := Parse(`${B} ${A:=x} ${A}
${A:-x} ${A:="y"} ${A:-${C:=z}}
${E:0:2} ${F^} $${G} ${ D } ${H:-${I}} ${J:=}`)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(text.Variables()).To(Equal([]Variable{
		{Name: "A", Defaults: []string{"x", `"y"`}, Lines: []int{1, 2}},
		{Name: "B", Required: true, Lines: []int{1}},
		{Name: "C", Defaults: []string{"z"}, Lines: []int{2}},
		{Name: "D", Required: true, Lines: []int{3}},
		{Name: "E", Lines: []int{3}},
		{Name: "F", Required: true, Lines: []int{3}},
		{Name: "H", Lines: []int{3}},
		{Name: "I", Lines: []int{3}},
		{Name: "J", Required: true, Lines: []int{3}},
	}))
}

// expectSameRequired fails the test unless clusterctl requires the same variables.
func expectSameRequired(t *testing.T, text *Text, source string) {
	t.Helper()

	want, err := yamlprocessor.NewSimpleProcessor().GetVariableMap([]byte(source))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	for _, v := range text.Variables() {
		word, known := want[v.Name]
		NewWithT(t).Expect(v.Required).To(Equal(known && word == nil), v.Name)
		delete(want, v.Name)
	}

	NewWithT(t).Expect(want).To(BeEmpty())
}

func TestSyntaxErrors(t *testing.T) {
	for _, test := range []struct {
		text         string
		line, column int
		expression   string
		reason       string
	}{
		{"a: ${", 1, 4, "${", "name"},
		{"a: ${}", 1, 4, "${}", "name"},
		{"a: ${V:=x} ${W-d} # comment\nb", 1, 12, "${W-d} # comment", "missing closing brace"},
		{"\r\n  é: ${V", 2, 6, "${V", "missing closing brace"},
		{"${V+d}", 1, 1, "${V+d}", "missing closing brace"},
		{"${V?d}", 1, 1, "${V?d}", "missing closing brace"},
		{"${V$W}", 1, 1, "${V$W}", "missing closing brace"},
		{"${ V$W }", 1, 1, "${ V$W }", "missing closing brace"},
		{"${ V W }", 1, 1, "${ V W }", "unable to parse variable name"},
		{"${V:}", 1, 1, "${V:}", "unable to parse substitution"},
		{"${V#}", 1, 1, "${V#}", "unable to parse substitution"},
		{"${V/a}", 1, 1, "${V/a}", "bad substitution"},
		{"${V:=\n${W-}}", 1, 1, "${V:=", "missing closing brace"},
		{"${V:=${W}", 1, 1, "${V:=${W}", "unable to parse substitution within function"},
		{"x\n\n${V:=\x00}", 3, 1, "${V:=\x00}", "unable to parse substitution"},
		{"${V#${W}}", 1, 1, "${V#${W}}", "the pattern after # is itself an expression"},
		{"a\n${V:=${W%%${X}}}", 2, 1, "${V:=${W%%${X}}}", "the pattern after %% is itself an expression"},
		{"${V##a\xff*b}", 1, 1, "${V##a\xff*b}", "U+FFFD"},
		{"${V:=" + strings.Repeat("x", maxExpression) + "}", 1, 1, "${V:=" + strings.Repeat("x", 55) + "…", "longer than"},
	} {
		t.Run(test.text[:min(20, len(test.text))], func(t *testing.T) {
			_, err := Parse(test.text)

			var syntax *SyntaxError
			NewWithT(t).Expect(errors.As(err, &syntax)).To(BeTrue(), "%v", err)
			NewWithT(t).Expect([]int{syntax.Line, syntax.Column}).To(Equal([]int{test.line, test.column}))
			NewWithT(t).Expect(syntax.Expression).To(Equal(test.expression))
			NewWithT(t).Expect(err).To(MatchError(And(
				HavePrefix(fmt.Sprintf("line %d, column %d: expression ", test.line, test.column)),
				ContainSubstring(test.reason))))

			_, clusterctlErr := clusterctl(test.text, map[string]string{"V": "", "W": "", "X": ""})
			NewWithT(t).Expect(errors.Is(err, ErrUnsupported)).To(Equal(clusterctlErr == nil), "clusterctl: %v", clusterctlErr)
		})
	}
}

func TestParseMaliciousText(t *testing.T) {
	for name, test := range map[string]struct{ text, reason string }{
		"nesting without an end": {strings.Repeat("${A:=", 1<<18), "missing closing brace"},
		"nesting":                {strings.Repeat("${A:=", 33) + strings.Repeat("}", 33), "32 levels"},
		"deep nesting":           {strings.Repeat("${A:=", 1<<18) + strings.Repeat("}", 1<<18), "missing closing brace"},
		"braces":                 {"${A/" + strings.Repeat("}", 1<<18), "bad substitution"},
		"braces without a name":  {"${" + strings.Repeat("}", 1<<18), "name"},
		"escaped expressions":    {"${A:=" + strings.Repeat("$${}", 4000) + "}", "unable to parse"},
		"expressions in a line":  {strings.Repeat("${A:=b}", 1<<17), "more than 10000 expressions"},
		"nested expressions":     {strings.Repeat("${A:=${B}${C}}", 1<<16), "more than 10000 expressions"},
		"long expressions":       {strings.Repeat("${A:="+strings.Repeat("x", 1<<13)+"}", 1<<10), "larger than 1024 KiB"},
		"escapes":                {strings.Repeat("$$", 1<<20), "more than 100000"},
		"escapes in expressions": {strings.Repeat("${A:="+strings.Repeat("$$", 1<<12)+"}", 1<<10), "larger than 1024 KiB"},
		"escapes without an end": {"${A:=" + strings.Repeat("$$", 1<<20), "unable to parse"},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, err := Parse(test.text)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.reason)))
			NewWithT(t).Expect(time.Since(start)).To(BeNumerically("<", 10*time.Second), "it usually takes 0.1 s")
		})
	}
}

// TestParseIsLinear: twice the text takes twice the time, not four times. All of it is in one line,
// because errors report columns.
func TestParseIsLinear(t *testing.T) {
	parse := func(n int) time.Duration {
		fastest := time.Hour
		text := strings.Repeat("é$(A) ${A:=b} ", n)

		for range 5 {
			start := time.Now()
			_, err := Parse(text)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())

			fastest = min(fastest, time.Since(start))
		}

		return fastest
	}

	// A busy machine may disturb some of the attempts, but nothing makes a quadratic parser pass one.
	NewWithT(t).Eventually(func() bool { return parse(8000) < 20*parse(1000) }).
		WithTimeout(20 * time.Second).Should(BeTrue())
}

func TestColumns(t *testing.T) {
	_, err := Parse("${A}\n é ${B} $${C} ü ${D} ${")

	var syntax *SyntaxError
	NewWithT(t).Expect(errors.As(err, &syntax)).To(BeTrue())
	NewWithT(t).Expect([]int{syntax.Line, syntax.Column}).To(Equal([]int{2, 22}))
}

// TestExpandLimit: replacements in replacements grow exponentially, so their size is computed before.
func TestExpandLimit(t *testing.T) {
	bomb := "x"
	for range 20 {
		bomb = "${A//e/" + bomb + "}"
	}

	for _, source := range []string{bomb, strings.Repeat("${B}", 100)} {
		text, err := Parse(source)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())

		_, err = text.Expand(map[string]string{"A": "eeeeeeeeeeee", "B": strings.Repeat("x", 1<<16)})
		NewWithT(t).Expect(err).To(MatchError(ErrUnsupported))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("larger than 4 MiB")))
	}
}

func TestSlice(t *testing.T) {
	source := "first: ${A}\n---\nsecond: ${A:=x} ${B:=y} $${Z}\n---\nthird: ${B}\n"
	whole, err := Parse(source)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	second, third := strings.Index(source, "second"), strings.Index(source, "third")

	part, err := whole.Slice(second, third)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(part.Expand(map[string]string{"A": "a"})).To(Equal("second: a y ${Z}\n---\n"))
	NewWithT(t).Expect(part.Variables()).To(Equal([]Variable{
		{Name: "A", Required: true, Defaults: []string{"x"}, Lines: []int{3}},
		{Name: "B", Defaults: []string{"y"}, Lines: []int{3}},
	}))
	_, err = render(part.Template(), nil)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("no value for required variables: A")))

	part, err = whole.Slice(third, len(source)+1)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(render(part.Template(), nil)).To(Equal("third: \n"))

	inside := strings.Index(source, "A")
	for _, border := range [][2]int{{0, inside}, {inside, len(source)}} {
		_, err = whole.Slice(border[0], border[1])
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("line 1, column 8: expression ${A}")))
	}

	for cut := range len(source) + 1 {
		head, err := whole.Slice(0, cut)
		if err != nil {
			continue
		}

		tail, err := whole.Slice(cut, len(source))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		all, err := whole.Expand(map[string]string{"A": "a"})
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		headText, err := head.Expand(map[string]string{"A": "a"})
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(tail.Expand(map[string]string{"A": "a"})).To(Equal(strings.TrimPrefix(all, headText)))
	}
}
