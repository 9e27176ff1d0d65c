package expr

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/drone/envsubst/v2/parse"
)

// Template returns the text as that of a Helm template, for a file or a named
// template whose argument is the chart's root context. It needs [Helpers].
// If the text has expressions, it begins with an action that declares $var, the
// variables as text, and fails with the names of all required ones that are
// missing. Literal text comes out as it was, braces included.
func (t *Text) Template() string {
	var b strings.Builder
	b.Grow(t.literalSize() + 64*len(t.segments))
	t.declare(&b)

	for _, s := range t.segments {
		if s.expression != nil {
			b.WriteString("{{ " + s.expression.action + " }}")
			continue
		}

		writeLiteral(&b, s.literal)
	}

	return b.String()
}

// declare writes the action that sets $var, if there is a use for it.
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
	b.WriteString("{{ $var := " + include("variables", args) + " | fromJson ")

	if first := t.segments[0].literal; first != "" && strings.ContainsRune(" \t\r\n", rune(first[0])) {
		b.WriteString("}}") // "-}}" would eat the text's own space
	} else {
		b.WriteString("-}}\n")
	}
}

// writeLiteral writes text so that no template reads an action in it: not in
// the text, and not together with an action or a text that follows.
func writeLiteral(b *strings.Builder, text string) {
	// Helm deletes the words wherever they are in its output, once.
	text = strings.ReplaceAll(text, "<no value>", "<no <no value>value>")
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

// compiler turns the nodes of drone/envsubst's tree into template pipelines.
type compiler struct {
	required map[string]bool
}

// isDefault reports whether drone/envsubst takes a function for ${NAME:=word}. It
// knows no other meaning for ":?" and ":+".
func isDefault(name string) bool {
	switch name {
	case "=", ":=", ":-", ":?", ":+":
		return true
	}

	return false
}

// pipeline returns an expression as what stands between {{ and }}. Its result
// is always a string.
func (c compiler) pipeline(fn *parse.FuncNode) (string, error) {
	if trims(fn) {
		return c.trim(fn)
	}

	args := make([]string, len(fn.Args))
	for i, arg := range fn.Args {
		var err error
		if args[i], err = c.operand(arg); err != nil {
			return "", err
		}
	}

	return c.call(fn, args), nil
}

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

// argument returns an argument, or an empty string if there are not so many.
func argument(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}

	return `""`
}

// operand returns an argument of an expression as an operand of a function.
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

	return "", fmt.Errorf("%w: it nests what is neither text nor an expression", ErrUnsupported)
}

// head returns the value of a variable, "" if it is missing, as the head of a
// pipeline; value returns it as an operand.
func (c compiler) head(name string) string {
	if c.required[name] {
		return variable(name) // capstan.variables made sure of it
	}

	return variable(name) + ` | default ""`
}

func (c compiler) value(name string) string { return parenthesize(c.head(name)) }

// variable returns the operand that is null if the variable is missing.
func variable(name string) string {
	if '0' <= name[0] && name[0] <= '9' {
		return "(index $var " + quote(name) + ")" // $var.1 would be a number
	}

	return "$var." + name
}

func include(name string, args []string) string {
	return fmt.Sprintf(`include "capstan.%s" (list %s)`, name, strings.Join(args, " "))
}

func parenthesize(pipeline string) string {
	if strings.ContainsRune(pipeline, ' ') {
		return "(" + pipeline + ")"
	}

	return pipeline
}

// quote returns text as a template's string constant, in the more legible form.
func quote(text string) string {
	if strings.ContainsAny(text, `"\`) && strconv.CanBackquote(text) {
		return "`" + text + "`"
	}

	return strconv.Quote(text)
}
