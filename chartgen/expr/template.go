package expr

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/drone/envsubst/v2/parse"
)

// Template returns the text as a Helm template, for a named template whose argument is the chart's
// root context. It requires [Helpers]. Only "include" returns the text unchanged: Helm deletes the words
// "<no value>" from what a file renders.
//
// If the text has expressions, the template begins with actions that declare $mark, see [Text.Marked], and
// $var, the values of the variables as strings. It fails with the names of all required variables that are
// unset. Literal text is rendered unchanged, including braces.
func (t *Text) Template() string {
	var b strings.Builder
	b.Grow(t.literalSize() + 64*len(t.segments))
	t.declare(&b)

	for _, s := range t.segments {
		if s.expression != nil {
			b.WriteString("{{ or " + field("$mark", s.expression.root.Param) + " " + parenthesize(s.expression.action) + " }}")
			continue
		}

		writeLiteral(&b, s.literal)
	}

	return b.String()
}

// declare writes the action that declares $var, if the text has expressions.
func (t *Text) declare(b *strings.Builder) {
	used := false
	required := map[string]bool{}

	for e := range t.expressions() {
		used = true

		for _, fn := range functions(e.root) {
			if t.required[fn.Param] {
				required[quote(fn.Param)] = true
			}
		}
	}

	if !used {
		return
	}

	args := append([]string{"$"}, slices.Sorted(maps.Keys(required))...)
	b.WriteString("{{ $mark := .Marks | default dict }}{{ $var := " + include("variables", args) + " | fromJson ")

	first := t.segments[0].literal
	if first != "" && strings.ContainsRune(" \t\r\n", rune(first[0])) {
		b.WriteString("}}") // "-}}" would remove the leading space of the text
		return
	}

	b.WriteString("-}}\n")
}

// writeLiteral writes text so that the template engine finds no action in it, alone or together
// with the text that follows.
func writeLiteral(b *strings.Builder, text string) {
	for {
		brace := strings.IndexByte(text, '{')
		if brace < 0 {
			b.WriteString(text)
			return
		}

		end := brace + 1
		for end < len(text) && text[end] == '{' {
			end++
		}

		if end-brace > 1 || end == len(text) {
			b.WriteString(text[:brace])
			b.WriteString(`{{ "` + text[brace:end] + `" }}`)
		} else {
			b.WriteString(text[:end])
		}

		text = text[end:]
	}
}

// compiler compiles the nodes of drone/envsubst's syntax tree to template pipelines.
type compiler struct {
	required map[string]bool
}

// isDefault reports whether drone/envsubst treats a function as ${NAME:=word}. This includes ":?"
// and ":+", which it does not implement.
func isDefault(name string) bool {
	switch name {
	case "=", ":=", ":-", ":?", ":+":
		return true
	}

	return false
}

// pipeline compiles an expression to the pipeline between {{ and }}. The pipeline's result is
// always a string.
func (c compiler) pipeline(fn *parse.FuncNode) (string, error) {
	if isTrim(fn) {
		return c.trim(fn)
	}

	args := make([]string, len(fn.Args))
	for i, arg := range fn.Args {
		operand, err := c.operand(arg)
		if err != nil {
			return "", err
		}

		args[i] = operand
	}

	return c.call(fn, args), nil
}

// call compiles a function with compiled arguments.
func (c compiler) call(fn *parse.FuncNode, args []string) string {
	switch fn.Name {
	case ",,":
		return c.head(fn.Param) + " | lower"
	case "^^":
		return c.head(fn.Param) + " | upper"
	case ",":
		return `include "capstan.lowerFirst" ` + c.value(fn.Param)
	case "^":
		return `include "capstan.upperFirst" ` + c.value(fn.Param)
	case "#":
		return c.head(fn.Param) + " | len | toString"
	case ":":
		return include("substr", append([]string{"$var", quote(fn.Param)}, args...))
	case "//":
		return fmt.Sprintf("%s | replace %s %s", c.head(fn.Param), args[0], argument(args, 1))
	case "/":
		return include("replaceFirst", []string{c.value(fn.Param), args[0], argument(args, 1)})
	case "/#":
		return include("replacePrefix", append([]string{c.value(fn.Param)}, args...))
	case "/%":
		return include("replaceSuffix", append([]string{c.value(fn.Param)}, args...))
	}

	switch len(args) {
	case 0:
		return c.head(fn.Param)
	case 1:
		return variable(fn.Param) + " | default " + args[0]
	}

	return variable(fn.Param) + " | default (print " + strings.Join(args, " ") + ")"
}

// argument returns an argument, or the template constant "" if there are fewer arguments.
func argument(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}

	return `""`
}

// operand compiles an argument of an expression to an operand of a template function.
func (c compiler) operand(node parse.Node) (string, error) {
	switch node := node.(type) {
	case *parse.TextNode:
		return quote(node.Value), nil
	case *parse.FuncNode:
		pipeline, err := c.pipeline(node)
		if err != nil {
			return "", err
		}

		return parenthesize(pipeline), nil
	}

	return "", fmt.Errorf("%w: it contains a node that is neither text nor an expression", ErrUnsupported)
}

// head returns the beginning of a pipeline with the value of a variable, which is "" if it is
// unset.
func (c compiler) head(name string) string {
	if c.required[name] {
		return variable(name) // capstan.variables ensures that it is set
	}

	return variable(name) + ` | default ""`
}

// value returns the value of a variable, which is "" if it is unset, as an operand.
func (c compiler) value(name string) string { return parenthesize(c.head(name)) }

// variable returns the value of a variable as an operand, which is null if the variable is unset.
func variable(name string) string { return field("$var", name) }

// field returns the entry for a variable in a map as an operand.
func field(of, name string) string {
	if '0' <= name[0] && name[0] <= '9' {
		return "(index " + of + " " + quote(name) + ")" // $var.1 is not a valid field
	}

	return of + "." + name
}

// include returns the call of one of the Helpers.
func include(name string, args []string) string {
	return fmt.Sprintf(`include "capstan.%s" (list %s)`, name, strings.Join(args, " "))
}

func parenthesize(pipeline string) string {
	if strings.ContainsRune(pipeline, ' ') {
		return "(" + pipeline + ")"
	}

	return pipeline
}

// quote returns text as a string constant of a template, with backquotes if that avoids escapes.
func quote(text string) string {
	if strings.ContainsAny(text, `"\`) && strconv.CanBackquote(text) {
		return "`" + text + "`"
	}

	return strconv.Quote(text)
}
