package expr

import (
	"fmt"
	"strings"

	"github.com/drone/envsubst/v2"
	"github.com/drone/envsubst/v2/parse"
)

// maxValues is the maximum size in bytes of the values of all expressions of a text.
const maxValues = 4 << 20

// MissingError reports that required variables have no value.
type MissingError struct {
	Names []string // sorted
}

func (e *MissingError) Error() string {
	return "no value for required variables: " + strings.Join(e.Names, ", ")
}

// Expand returns the text with its expressions evaluated by drone/envsubst, like clusterctl's
// processor. A variable that is not in the map is unset. If a required variable is unset, the error
// is a *MissingError. Expand also fails if drone/envsubst cannot evaluate an expression.
func (t *Text) Expand(variables map[string]string) (string, error) {
	var missing []string

	for _, v := range t.Variables() {
		_, set := variables[v.Name]
		if v.Required && !set {
			missing = append(missing, v.Name)
		}
	}

	if missing != nil {
		return "", &MissingError{Names: missing}
	}

	if err := t.checkSize(variables); err != nil {
		return "", err
	}

	// Most documents are literal text, which need not be copied.
	if len(t.segments) == 1 && t.segments[0].expression == nil {
		return t.segments[0].literal, nil
	}

	var b strings.Builder
	b.Grow(t.literalSize())

	for _, s := range t.segments {
		if s.expression == nil {
			b.WriteString(s.literal)
			continue
		}

		value, err := s.expression.evaluate(variables)
		if err != nil {
			return "", err
		}

		b.WriteString(value)
	}

	return b.String(), nil
}

// MarkPrefix is the beginning of all marks.
const MarkPrefix = "capstan0mark0"

// Marked returns the text with a mark in place of each expression: MarkPrefix and the name of the
// expression's variable. A mark is plain text to YAML, so it shows which nodes of a document contain
// expressions. [Text.Template] renders the same if its argument has the marks of all variables, by name, as
// "Marks".
func (t *Text) Marked() string {
	var b strings.Builder

	for _, s := range t.segments {
		if s.expression == nil {
			b.WriteString(s.literal)
		} else {
			b.WriteString(MarkPrefix + s.expression.root.Param)
		}
	}

	return b.String()
}

// checkSize returns an error if the values of the expressions could be larger than maxValues. Nested
// replacements multiply: a value of 200 bytes of expressions may have gigabytes.
func (t *Text) checkSize(variables map[string]string) error {
	size := 0

	for e := range t.expressions() {
		if size += maxSize(e.root, variables); size > maxValues {
			return fmt.Errorf("line %d: expression %s: %w: the values of the expressions would be larger than %d MiB",
				e.line, shorten(e.written), ErrUnsupported, maxValues>>20)
		}
	}

	return nil
}

// maxSize returns an upper bound for the size of an expression's value and of the values nested in
// it, or maxValues+1 if the bound is larger than that.
func maxSize(fn *parse.FuncNode, variables map[string]string) int {
	value := len(variables[fn.Param])
	size := 3 * value // upper case can be longer than lower case

	for i, arg := range fn.Args {
		argSize := 0

		switch arg := arg.(type) {
		case *parse.TextNode:
			argSize = len(arg.Value)
		case *parse.FuncNode:
			argSize = maxSize(arg, variables)
		}

		if fn.Name == "//" && i > 0 {
			argSize *= value + 1 // an empty pattern is found before and after each character
		}

		size += argSize
	}

	return min(size, maxValues+1)
}

// evaluate evaluates the expression with drone/envsubst. It converts the panic on a substring of
// negative length to an error.
func (e *expression) evaluate(variables map[string]string) (value string, err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("line %d: expression %s: the substring ends before it begins: use a length of 0 or more",
				e.line, shorten(e.written))
		}
	}()

	return envsubst.Eval(e.source, func(name string) string { return variables[name] })
}
