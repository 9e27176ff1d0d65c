package expr

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// forms are all kinds of expressions, with the text of their templates after the declarations and
// without marks. A variable is required if its first use has no argument; its template needs no default
// then.
var forms = []struct{ text, template string }{
	{`${V}`, `{{ $var.V }}`},
	{`a ${V} b`, `a {{ $var.V }} b`},
	{`${V:=word}`, `{{ $var.V | default "word" }}`},
	{`${V=word}`, `{{ $var.V | default "word" }}`},
	{`${V:-word}`, `{{ $var.V | default "word" }}`},
	{`${V:?word}`, `{{ $var.V | default "word" }}`},
	{`${V:+word}`, `{{ $var.V | default "word" }}`},
	{`${V:=""}`, "{{ $var.V | default `\"\"` }}"},
	{`${V:='false'}`, `{{ $var.V | default "'false'" }}`},
	{`${V:=}`, `{{ $var.V }}`},
	{`${V:==}`, `{{ $var.V | default "=" }}`},
	{`${V:=:8443}`, `{{ $var.V | default ":8443" }}`},
	{`${V:=a b/c\d#e%f^g,h$i}`, "{{ $var.V | default `a b/c\\d#e%f^g,h$i` }}"},
	{"${V:=one\ntwo}", `{{ $var.V | default "one\ntwo" }}`},
	{`${V:=word} ${V}`, `{{ $var.V | default "word" }} {{ $var.V | default "" }}`},
	{`${V} ${V:=word}`, `{{ $var.V }} {{ $var.V | default "word" }}`},
	{`${V:-${W}}`, `{{ $var.V | default ($var.W | default "") }}`},
	{`${V:-${W:-word}}`, `{{ $var.V | default ($var.W | default "word") }}`},
	{`${V:-a${W}b${V:=}c}`, `{{ $var.V | default (print "a" ($var.W | default "") "b" ($var.V | default "") "c") }}`},
	{
		`${V:-${#W}${#W}}`,
		`{{ $var.V | default (print ($var.W | default "" | len | toString) ($var.W | default "" | len | toString)) }}`,
	},
	{`${W}${V:-${W}}`, `{{ $var.W }}{{ $var.V | default $var.W }}`},
	{`${V^}`, `{{ include "capstan.upperFirst" $var.V }}`},
	{`${V^^}`, `{{ $var.V | upper }}`},
	{`${V,}`, `{{ include "capstan.lowerFirst" $var.V }}`},
	{`${V,,}`, `{{ $var.V | lower }}`},
	{`${V^,}`, `{{ $var.V }}`}, // envsubst does not know this function and returns the value
	{`${V:=x}${V^}`, `{{ $var.V | default "x" }}{{ include "capstan.upperFirst" ($var.V | default "") }}`},
	{`${#V}`, `{{ $var.V | len | toString }}`},
	{`${V:1}`, `{{ include "capstan.substr" (list $var "V" "1") }}`},
	{`${V:0:2}`, `{{ include "capstan.substr" (list $var "V" "0" "2") }}`},
	{`${V:1:0}`, `{{ include "capstan.substr" (list $var "V" "1" "0") }}`},
	{`${V:2:100}`, `{{ include "capstan.substr" (list $var "V" "2" "100") }}`},
	{`${V:100:2}`, `{{ include "capstan.substr" (list $var "V" "100" "2") }}`},
	{`${V: -2}`, `{{ include "capstan.substr" (list $var "V" " -2") }}`}, // not a number for envsubst
	{`${V:2:-1}`, `{{ include "capstan.substr" (list $var "V" "2" "-1") }}`},
	{`${V:9223372036854775807:9}`, `{{ include "capstan.substr" (list $var "V" "9223372036854775807" "9") }}`},
	{`${V:9223372036854775808}`, `{{ include "capstan.substr" (list $var "V" "9223372036854775808") }}`},
	{`${V:007}`, `{{ include "capstan.substr" (list $var "V" "007") }}`},
	{`${V:1:x}`, `{{ include "capstan.substr" (list $var "V" "1" "x") }}`},
	{`${V:${W}}`, `{{ include "capstan.substr" (list $var "V" ($var.W | default "")) }}`},
	{`${V:${W}:${W}}`, `{{ include "capstan.substr" (list $var "V" ($var.W | default "") ($var.W | default "")) }}`},
	{`${V#ab}`, `{{ $var.V | default "" | trimPrefix "ab" }}`},
	{`${V##ab}`, `{{ $var.V | default "" | trimPrefix "ab" }}`},
	{`${V%a}`, `{{ $var.V | default "" | trimSuffix "a" }}`},
	{`${V%%éa}`, `{{ $var.V | default "" | trimSuffix "éa" }}`},
	{`${V#a*}`, `{{ $var.V | default "" | trimPrefix "a" }}`},
	{`${V%*a}`, `{{ $var.V | default "" | trimSuffix "a" }}`},
	{`${V#*/}`, `{{ regexReplaceAllLiteral "(?s)^.*?/" ($var.V | default "") "" }}`},
	{`${V##*/}`, `{{ regexReplaceAllLiteral "(?s)^.*/" ($var.V | default "") "" }}`},
	{`${V##a*}`, `{{ regexReplaceAllLiteral "(?s)^a.*" ($var.V | default "") "" }}`},
	{`${V##*}`, `{{ regexReplaceAllLiteral "(?s)^.*" ($var.V | default "") "" }}`},
	{`${V%.*}`, "{{ regexReplaceAll `(?s)^(.*)\\..*$` ($var.V | default \"\") \"${1}\" }}"},
	{`${V%%.*}`, "{{ regexReplaceAllLiteral `(?s)\\..*$` ($var.V | default \"\") \"\" }}"},
	{`${V%a*b**c}`, `{{ regexReplaceAll "(?s)^(.*)a.*b.*c$" ($var.V | default "") "${1}" }}`},
	{`${V#a*b}`, `{{ regexReplaceAllLiteral "(?s)^a.*?b" ($var.V | default "") "" }}`},
	{`${V#*}`, `{{ include "capstan.trim" (list "#" ($var.V | default "") "*") }}`},
	{`${V%*}`, `{{ include "capstan.trim" (list "%" ($var.V | default "") "*") }}`},
	{`${V#?}`, `{{ include "capstan.trim" (list "#" ($var.V | default "") ".") }}`},
	{`${V##??}`, `{{ include "capstan.trim" (list "##" ($var.V | default "") "..") }}`},
	{`${V%?}`, `{{ include "capstan.trim" (list "%" ($var.V | default "") ".") }}`},
	{`${V%%a?*}`, `{{ include "capstan.trim" (list "%%" ($var.V | default "") "*" ".a") }}`},
	{`${V##*?*??}`, `{{ include "capstan.trim" (list "##" ($var.V | default "") "*" "." "*" "..") }}`},
	{`${V##[a-z]*.}`, "{{ include \"capstan.trim\" (list \"##\" ($var.V | default \"\") \"[a-z]\" \"*\" `\\.`) }}"},
	{`${V#[^a-]b]}`, `{{ $var.V | default "" }}`},
	{`${V#[^^\]\-][z-a0-9]}`, "{{ include \"capstan.trim\" (list \"#\" ($var.V | default \"\") `[^\\^\\]\\-][0-9]`) }}"},
	{`${V#[a-]}`, `{{ $var.V | default "" }}`},
	{`${V#[z-a]}`, "{{ include \"capstan.trim\" (list \"#\" ($var.V | default \"\") `[^\\x00-\\x{10FFFF}]`) }}"},
	{`${V#[^z-a]}`, `{{ include "capstan.trim" (list "#" ($var.V | default "") ".") }}`},
	{`${V#[a}`, `{{ $var.V | default "" }}`},
	{`${V#a\}`, `{{ $var.V | default "" }}`},
	{`${V#\*}`, `{{ $var.V | default "" | trimPrefix "*" }}`},
	{`${V%[a-c]}`, `{{ $var.V | default "" }}`}, // envsubst reverses the pattern too
	{`${V%\*}`, `{{ $var.V | default "" }}`},
	{`${V/a/x}`, `{{ include "capstan.replaceFirst" (list ($var.V | default "") "a" "x") }}`},
	{`${V/a/}`, `{{ include "capstan.replaceFirst" (list ($var.V | default "") "a" "") }}`},
	{`${V//a/x}`, `{{ $var.V | default "" | replace "a" "x" }}`},
	{`${V//a/}`, `{{ $var.V | default "" | replace "a" "" }}`},
	{`${V//a//b/c}`, `{{ $var.V | default "" | replace "a" "b/c" }}`},
	{`${V/#a/x: y}`, `{{ include "capstan.replacePrefix" (list ($var.V | default "") "a" "x: y") }}`},
	{`${V/#a/}`, `{{ include "capstan.replacePrefix" (list ($var.V | default "") "a") }}`}, // envsubst replaces nothing
	{`${V/%a/x}`, `{{ include "capstan.replaceSuffix" (list ($var.V | default "") "a" "x") }}`},
	{`${V/%a/}`, `{{ include "capstan.replaceSuffix" (list ($var.V | default "") "a") }}`},
	{`${V/\//\\}`, "{{ include \"capstan.replaceFirst\" (list ($var.V | default \"\") \"/\" `\\`) }}"},
	{`${V/a/$1$$}`, `{{ include "capstan.replaceFirst" (list ($var.V | default "") "a" "$1$") }}`},
	{`${V/a/$${}`, `{{ include "capstan.replaceFirst" (list ($var.V | default "") "a" "${") }}`},
	{`${V/${W}/x}`, `{{ include "capstan.replaceFirst" (list ($var.V | default "") ($var.W | default "") "x") }}`},
	{`${V//${W}/${W}}`, `{{ $var.V | default "" | replace ($var.W | default "") ($var.W | default "") }}`},
	{`${V/#${W}/x}`, `{{ include "capstan.replacePrefix" (list ($var.V | default "") ($var.W | default "") "x") }}`},
	{`${V/%${W}/x}`, `{{ include "capstan.replaceSuffix" (list ($var.V | default "") ($var.W | default "") "x") }}`},
	{`${V/}/x}`, `{{ include "capstan.replaceFirst" (list ($var.V | default "") "}" "x") }}`},
	{`${ V }${V	}${
V}`, `{{ $var.V }}{{ $var.V }}{{ $var.V }}`},
	{`${W:=${ V }}`, `{{ $var.W | default ($var.V | default "") }}`},
	{`${1}${1:=x}${1^^}`, `{{ (index $var "1") }}{{ (index $var "1") | default "x" }}{{ (index $var "1") | upper }}`},
	{`${Ünï_٣}`, `{{ $var.Ünï_٣ }}`},
	{`$$${V}`, `${{ $var.V }}`},
	{`{${V}}`, `{{ "{" }}{{ $var.V }}}`},
	{`{{{${V}`, `{{ "{{{" }}{{ $var.V }}`},
	{"é\r\n${V}\r\n", "é\r\n{{ $var.V }}\r\n"},
}

// hostile are values with a meaning in YAML, templates, or regular expressions, and edge cases of
// the functions.
var hostile = []string{
	"",
	"a",
	"word",
	"Ab/ab.ab-ab",
	"xxabc.tar.gz",
	"ÀÉa",
	"éa",
	"a€x",
	"日本語.a",
	"0",
	"1",
	"-1",
	"+2",
	"-00",
	"-0x",
	"99999999999999999999",
	"-9223372036854775808",
	`"`,
	`'`,
	`a: b # c`,
	"line\nline\n",
	"\r\n\t ",
	`{{ fail "x" }}`,
	"}}",
	"$",
	"$$",
	"${V}",
	"$1",
	`\`,
	"/",
	"*",
	"[",
	"<nil>",
	"\ufffd",
	"\x00",
}

// marked matches the action of an expression.
var marked = regexp.MustCompile(`(?s)\{\{ or (?:\$mark\.\S+|\(index \$mark "\d"\)) ` +
	`(?:\(([^{}]*?\S \S.*?)\)|(\S+|\(index \$var "\d"\))) \}\}`)

// TestMarks: marks replace whole expressions, whatever they are and whatever the values.
func TestMarks(t *testing.T) {
	for _, form := range forms {
		t.Run(form.text, func(t *testing.T) {
			g := NewWithT(t)
			text, err := Parse(form.text)
			g.Expect(err).NotTo(HaveOccurred())

			marks := map[string]any{}
			values := map[string]any{"marks": marks}

			for _, v := range text.Variables() {
				values[v.Name], marks[v.Name] = "<value>", MarkPrefix+v.Name
			}

			rendered, err := render(text.Template(), values)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(rendered).To(Equal(text.Marked()))
			g.Expect(rendered).To(And(ContainSubstring(MarkPrefix), Not(ContainSubstring("<value>"))))
		})
	}
}

func TestForms(t *testing.T) {
	for _, form := range forms {
		t.Run(form.text, func(t *testing.T) {
			text, err := Parse(form.text)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())

			parts := strings.SplitN(text.Template(), "}}", 3)
			NewWithT(t).Expect(parts).To(HaveLen(3), "no declarations in %q", text.Template())

			body := marked.ReplaceAllString(strings.TrimPrefix(parts[2], "\n"), "{{ ${1}${2} }}")
			NewWithT(t).Expect(body).To(Equal(form.template))
			expectSameRequired(t, text, form.text)
			expectEqual(t, text, form.text, nil)

			for i, value := range hostile {
				expectEqual(t, text, form.text, map[string]string{"V": value, "1": value, "Ünï_٣": value})

				if !strings.Contains(form.text, "W") {
					continue
				}

				for _, other := range []string{value, "1", "a", hostile[(i+7)%len(hostile)]} {
					expectEqual(t, text, form.text, map[string]string{"V": value, "W": other})
				}
			}
		})
	}
}

func TestLiteralText(t *testing.T) {
	for _, source := range []string{
		"", " ", "plain", "no newline at the end", "é\r\n", "\ufeffbom", "bad \xff utf-8",
		"$", "$$", "$$$", "a$b", "$(VAR)", "$$(VAR)", "a$", "$$$$a",
		"$${V}", "$${ V }", "$${\nV$$W }", "$${ V W }", "$$${ ", "$$$${V", "$ {V}",
		"{", "{{", "{{{", "}}", "{{ .Values.x }}", "{{- fail `x` -}}", "{{/* no comment */}}", "a {{ b",
		`{"a":{"b":{}}}`, "{%",
		"<no value>", "<no <no value>value>", "end {", "end {$$", "before\x00after ${", "{\x00",
	} {
		t.Run(source, func(t *testing.T) {
			text, err := Parse(source)
			if strings.HasPrefix(source, "$$${ ") {
				NewWithT(t).Expect(err).To(HaveOccurred())
				return
			}

			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			expectEqual(t, text, source, nil)
		})
	}
}

func TestDeclaration(t *testing.T) {
	const declareMark = `{{ $mark := .Marks | default dict }}`

	for source, want := range map[string]string{
		"a: b": "a: b",
		"a: ${V:=x}": declareMark + `{{ $var := include "capstan.variables" (list $) | fromJson -}}` +
			"\na: " + `{{ or $mark.V ($var.V | default "x") }}`,
		"\na: ${V:=x}": declareMark + `{{ $var := include "capstan.variables" (list $) | fromJson }}` +
			"\na: " + `{{ or $mark.V ($var.V | default "x") }}`,
		"${W}${V}${U:=a}": declareMark + `{{ $var := include "capstan.variables" (list $ "V" "W") | fromJson -}}` + "\n" +
			`{{ or $mark.W $var.W }}{{ or $mark.V $var.V }}{{ or $mark.U ($var.U | default "a") }}`,
	} {
		text, err := Parse(source)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(text.Template()).To(Equal(want))
	}
}

func TestTypesOfValues(t *testing.T) {
	text, err := Parse("${V:=unset}")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	for _, test := range []struct {
		value any
		want  string
	}{
		{nil, "unset"},
		{"", "unset"},
		{"x", "x"},
		{true, "true"},
		{false, "false"},
		{0, "0"},
		{int64(-7), "-7"},
		{float64(0), "0"},
		{float64(1000000), "1000000"},
		{0.5, "0.5"},
		{1e20, "100000000000000000000"},
		{json.Number("1000000"), "1000000"},
		{json.Number("1.10"), "1.10"},
		{[]any{"a"}, `["a"]`},
	} {
		NewWithT(t).Expect(render(text.Template(), map[string]any{"V": test.value})).To(Equal(test.want))
	}
}

func TestMissingVariables(t *testing.T) {
	text, err := Parse("${B} ${A} ${C:=x} ${D}")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	_, err = render(text.Template(), map[string]any{"D": "", "B": nil})
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("no value for required variables: A, B;")))

	_, err = text.Expand(map[string]string{"D": ""})

	var missing *MissingError
	NewWithT(t).Expect(errors.As(err, &missing)).To(BeTrue())
	NewWithT(t).Expect(missing.Names).To(Equal([]string{"A", "B"}))
}

func TestEvaluationErrors(t *testing.T) {
	source := "a\nb: ${V:2:-1}"
	text, err := Parse(source)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	_, err = render(text.Template(), map[string]any{"V": "secret"})
	NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("${V:2:-1}"), Not(ContainSubstring("secret")))))

	_, err = text.Expand(map[string]string{"V": "secret"})
	NewWithT(t).Expect(err).
		To(MatchError(And(ContainSubstring("line 2: expression ${V:2:-1}"), Not(ContainSubstring("secret")))))
}

func TestInvalidUTF8(t *testing.T) {
	text, err := Parse("${V}")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	_, err = render(text.Template(), map[string]any{"V": "\xff\xfe"})
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("variable V is not valid UTF-8")))
}

func TestDeepNesting(t *testing.T) {
	source := strings.Repeat("${V:-", maxNesting) + "x" + strings.Repeat("}", maxNesting)
	text, err := Parse(source)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	expectEqual(t, text, source, nil)
}

func TestValuesWithoutVariables(t *testing.T) {
	text, err := Parse("${V:=x}")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(render(text.Template(), nil)).To(Equal("x"))
}
