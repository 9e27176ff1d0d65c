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
		"${A:=${B}}":                         "",
		"${A:-${B}} ${B} ${A}":               "",
		"${A=x-${B:=y}-z}":                   "",
		"${A:=${C:=${D:=${E}${B}}-${F:=}}}}": "",
		"${A:=${C:+c ${ B } $$ $B $c {}}":    "",
		"${A:=$${B}$$${B}$}":                 "",
		"${A:=${B/#b/x}}":                    "",
		"${A:=${C/#$$b/x}}":                  "",
		"${A/#$${b/x}":                       "",
		"${A/#$${b}/x}":                      "bad substitution",
		"${Ä:=${Ü:=ß}}":                      "",
		nested(20):                           "",
		nested(21):                           "more than 20 expressions contain each other",
		nested(5000):                         "more than 20 expressions contain each other",
		"${A/#${B}/x}":                       "only the default of a variable may contain another",
		"${A:=${C:=${B:0:1}}}":               ": ${C:=${B:0:1}}: ${B:0:1}: not supported in a chart",
		"${A:=${}}":                          "write ${NAME}",
		"${A${B}}":                           "expression ${A${B}}: ",
		"${A:=${B}":                          "expression ${A:=${B}: missing closing brace: write ${NAME}",
		"${A:=b":                             "write ${NAME}",
		"${}":                                "write ${NAME}",
		"${A B}":                             "write ${NAME}",
		"${A-b}":                             "write ${NAME}",
		"${A$B}":                             "write ${NAME}",
		"${A:=" + strings.Repeat("b", 1<<15): "write ${NAME}",
		strings.Repeat("${A}", 2001):         "more than 2000 expressions",
		"${A:=" + strings.Repeat("b", 1<<14) + "}":                             "longer than 16384 bytes",
		strings.Repeat("${A:="+nested(19)+strings.Repeat("b", 15<<10)+"}", 40): "larger than 512 KiB",
		strings.Repeat("${A:="+strings.Repeat(nested(18)+"b", 100)+"}", 40):    "larger than 512 KiB",
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
				for _, other := range []string{"", "b", "${A}", "$$"} {
					values := map[string]string{"A": value, "B": other, "Ä": value, "E": other}
					variable := func(name string) (string, error) { return values[name], nil }

					want, err := yamlprocessor.NewSimpleProcessor().Process([]byte(text), variable)
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(parsed.Expand(values)).To(Equal(string(want)), "%q, %q", value, other)
				}
			}

			checkRequired(g, parsed, text)
		})
	}
}

// nested returns an expression that contains others, one in each other.
func nested(depth int) string {
	return strings.Repeat("${A:=", depth-1) + "${B}" + strings.Repeat("}", depth-1)
}

// checkRequired checks that the same variables are required as with clusterctl.
func checkRequired(g Gomega, parsed *expr.Text, text string) {
	theirs, err := yamlprocessor.NewSimpleProcessor().GetVariableMap([]byte(text))
	g.Expect(err).NotTo(HaveOccurred())

	var want, got []string

	for name, word := range theirs {
		if word == nil {
			want = append(want, name)
		}
	}

	for _, v := range parsed.Variables() {
		if v.Required {
			got = append(got, v.Name)
		}

		delete(theirs, v.Name)
	}

	g.Expect(got).To(ConsistOf(want))
	g.Expect(theirs).To(BeEmpty(), "all are listed")
}

// TestNUL: what is wrong with a text, and with none of its expressions, names none.
func TestNUL(t *testing.T) {
	_, err := expr.Parse("a\n${A}\x00b")
	NewWithT(t).Expect(err).To(MatchError(HavePrefix("line 2: the text has a NUL character")))
}

// TestVariables: a variable is required if its first use in the file has no default, as clusterctl has it. A use in a
// default does not count.
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

	masked, ranges := second.Masked()
	g.Expect(masked).To(Equal("mmmmmmm mmmmmmm mmmm\nmmmm mm{D}\n"))
	g.Expect(ranges).To(HaveLen(5))
	g.Expect(second.String()[ranges[1].Start:ranges[1].End]).To(Equal("${B:=3}"))
	g.Expect(second.Part(8, 20).Expand(map[string]string{"C": "c"})).To(Equal("3 c"))

	_, err = file.Slice(2, len(text), 1)
	g.Expect(err).To(MatchError("line 1: expression ${A}: it extends into the next document; close it before"))
}

// TestVariablesInDefaults: a default is described as it is written.
func TestVariablesInDefaults(t *testing.T) {
	g := NewWithT(t)

	file, err := expr.Parse("${A:=x-${B:=y}-${C}} ${C}")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(file.Variables()).To(Equal([]expr.Variable{
		{Name: "A", Defaults: []string{"x-${B:=y}-${C}"}},
		{Name: "B", Defaults: []string{"y"}},
		{Name: "C", Required: true},
	}))
}

// TestParseTemplate: cluster templates may have any expression of clusterctl.
func TestParseTemplate(t *testing.T) {
	for text, refusal := range map[string]string{
		"${A} ${A%.*} ${A:0:3} ${#A} ${A:=${A}}": "",
		"${A} ${A/#${B}/${C}}":                   "",
		"${A":                                    "line 1: expression ${A: ",
		"${}":                                    "line 1: expression ${}: write ${NAME}",
		"\n${":                                   "line 2: expression ${: ",
		"${A}\n${A-b}\n${A-b}":                   "line 2: expression ${A-b}: ",
		"${A}\n${A:=${B}":                        "line 2: expression ${A:=${B}: missing closing brace",
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

// TestCheckNamesTheExpression: the message is about the first expression, not about a dollar sign before it.
func TestCheckNamesTheExpression(t *testing.T) {
	g := NewWithT(t)
	text, err := expr.Parse("a: ^b$\nc: $${ A }\n")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(text.Check()).To(MatchError(HavePrefix("line 2: expression $${ A }: not supported in a chart: ")))
}
