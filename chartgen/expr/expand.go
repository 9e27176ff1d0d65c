package expr

import (
	"fmt"
	"strings"

	"github.com/drone/envsubst/v2"
)

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
