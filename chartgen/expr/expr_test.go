package expr_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/yamlprocessor"

	"github.com/capstan-project/capstan/chartgen/expr"
)

// TestExpandAsClusterctl: what Parse accepts becomes the same text as with clusterctl. Everything else is refused,
// with the expression and what to write instead.
func TestExpandAsClusterctl(t *testing.T) {
	const unsupported = "not supported in a chart"

	for text, refusal := range map[string]string{
		"nothing":                            "",
		"${A}":                               "",
		"${ A }":                             "",
		"${A}${B}${A}":                       "",
		"a: ${A:=b} c":                       "",
		"${A=b}":                             "",
		"${A:-b}":                            "",
		"${A:?b}":                            "",
		"${A:+b}":                            "",
		"${A:=}":                             "",
		"${A:= b, c }":                       "",
		"${A:={\"a\": 1}}":                   "",
		"${A:=two\nlines}":                   "",
		"${A/#va/x}":                         "",
		"${A/#other/x}":                      "",
		"${Ä}":                               "",
		"$$A and $${A} and $A and $":         "",
		"$$$$ $$${A}":                        "",
		"100% # {A} \\ }":                    "",
		"${A:=$$}":                           "",
		"${A/#a\\/b/x}":                      "",
		"$${ A }":                            "another way",
		"${A/#va}":                           "substitution",
		"${A/#va/}":                          unsupported,
		"${A^^}":                             unsupported,
		"${A:0:1}":                           unsupported,
		"${A%.*}":                            unsupported,
		"${A//a/b}":                          unsupported,
		"${#A}":                              unsupported,
		"${A:=${B}}":                         "write ${NAME} or ${NAME:=default}",
		"${A:=b":                             "write ${NAME}",
		"${}":                                "write ${NAME}",
		"${A B}":                             "write ${NAME}",
		"${A-b}":                             "write ${NAME}",
		"${A$B}":                             "write ${NAME}",
		"${A:=" + strings.Repeat("b", 1<<15): "write ${NAME}",
		strings.Repeat("${A}", 2001):         "more than 2000 expressions",
	} {
		t.Run(fmt.Sprintf("%.40q", text), func(t *testing.T) {
			g := NewWithT(t)

			parsed, err := expr.Parse(text)
			if err == nil {
				err = parsed.Check()
			}

			if refusal != "" {
				g.Expect(errors.As(err, new(*expr.SyntaxError))).To(BeTrue(), "%v", err)
				g.Expect(err).To(MatchError(And(HavePrefix("line 1: expression "), ContainSubstring(refusal))))

				return
			}

			g.Expect(err).NotTo(HaveOccurred())

			for _, value := range []string{"", "value", "${B}", "$$", "va", "two\nlines"} {
				values := map[string]string{"A": value, "B": "b", "Ä": value}
				variable := func(name string) (string, error) { return values[name], nil }

				want, err := yamlprocessor.NewSimpleProcessor().Process([]byte(text), variable)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(parsed.Expand(values)).To(Equal(string(want)), "%q", value)
			}
		})
	}
}

// TestVariables: a variable is required if its first use in the file has no default, as clusterctl has it.
// TestNUL: what is wrong with a text, and with none of its expressions, names none.
func TestNUL(t *testing.T) {
	_, err := expr.Parse("a\n${A}\x00b")
	NewWithT(t).Expect(err).To(MatchError(HavePrefix("line 2: the text has a NUL character")))
}

func TestVariables(t *testing.T) {
	g := NewWithT(t)
	text := "${A} ${B:=1}\n${A:=2} ${B:=3} ${C}\n${C} $${D}\n"

	file, err := expr.Parse(text)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(file.Variables()).To(Equal([]expr.Variable{
		{Name: "A", Required: true, Defaults: []string{"2"}},
		{Name: "B", Defaults: []string{"1", "3"}},
		{Name: "C", Required: true},
	}))

	_, err = file.Expand(map[string]string{"A": ""})
	g.Expect(err).To(MatchError("no value for required variables: C"))

	second, err := file.Slice(strings.Index(text, "\n")+1, len(text), 2)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(second.Expand(map[string]string{"A": "", "C": "c"})).To(Equal("2 3 c\nc ${D}\n"))
	g.Expect(second.Marked()).To(Equal("capstan0mark0A capstan0mark0B capstan0mark0C\ncapstan0mark0C ${D}\n"))

	_, err = file.Slice(2, len(text), 1)
	g.Expect(err).To(MatchError("line 1: expression ${A}: it extends into the next document; close it before"))
}

// TestParseTemplate: cluster templates may have any expression of clusterctl.
func TestParseTemplate(t *testing.T) {
	for text, refusal := range map[string]string{
		"${A} ${A%.*} ${A:0:3} ${#A} ${A:=${B}}": "",
		"${A":                                    "line 1: expression ${A: ",
		"${}":                                    "line 1: expression ${}: write ${NAME}",
		"\n${":                                   "line 2: expression ${: ",
	} {
		parsed, err := expr.ParseTemplate(text)
		if refusal != "" {
			NewWithT(t).Expect(err).To(MatchError(HavePrefix(refusal)))
			continue
		}

		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(parsed.Variables()).To(ConsistOf(HaveField("Name", "A")))
	}
}
