package bundle

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/chartgen/expr"
	"github.com/capstan-project/capstan/chartgen/limit"
)

// ValueError means that values of variables change more of a document than the fields that contain them, or that
// the document is no object with them. It contains no values.
type ValueError struct {
	// Variables are the names of those variables, sorted.
	Variables []string
}

func (e *ValueError) Error() string {
	subject := "the value of variable %s changes more than the field that contains it"
	if len(e.Variables) > 1 {
		subject = "the values of variables %s change more than the fields that contain them"
	}

	return fmt.Sprintf(subject+"; remove line breaks from it, or put the expression in quotes",
		strings.Join(e.Variables, ", "))
}

// maxMarkedKeys limits the keys of a map that contain expressions. Each of them is compared with each key that it may
// have become, with all that is below them: that multiplies if others are below. No real provider has such keys.
const maxMarkedKeys = 4

var errMarkedKeys = fmt.Errorf("more than %d keys of a map contain expressions, or one of them is below another one; "+
	"write the others without", maxMarkedKeys)

// checkKeys returns an error if a marked document has too many keys with marks, or is too deep, to compare it.
func checkKeys(marked map[string]any) error {
	if err := limit.Depth(marked); err != nil {
		return fmt.Errorf("with other values of its variables, it %w", err)
	}

	if hasManyKeys(marked, false) {
		return errMarkedKeys
	}

	return nil
}

// hasManyKeys reports whether a map in a value has many keys with marks, or any if the value is below such a key.
func hasManyKeys(value any, below bool) bool {
	switch value := value.(type) {
	case []any:
		for _, child := range value {
			if hasManyKeys(child, below) {
				return true
			}
		}
	case map[string]any:
		keys := 0

		for key, child := range value {
			marked := expr.IsMarked(key)
			if marked {
				keys++
			}

			if keys > maxMarkedKeys || marked && below || hasManyKeys(child, below || marked) {
				return true
			}
		}
	}

	return false
}

// checkValues returns a *ValueError if content, which the document has with these values, differs from the document
// with a mark in place of each expression elsewhere than in the fields with marks, and another error if that would take
// too long to find out. The template capstan.checkValues applies the same rule.
func (d *Document) checkValues(content map[string]any, values map[string]string) error {
	variables := d.Text.Variables()
	if len(variables) == 0 {
		return nil
	}

	marked := d.Marked()
	if err := checkKeys(marked); err != nil {
		return err
	}

	if marked != nil && content != nil && !differs(marked, content) {
		return nil
	}

	const many = 20 // to try each alone would take long

	invalid := &ValueError{}

	for _, v := range variables[:min(len(variables), many)] {
		if d.isCause(marked, v.Name, values) {
			invalid.Variables = append(invalid.Variables, v.Name)
		}
	}

	if invalid.Variables == nil { // not one of them alone
		for _, v := range variables {
			invalid.Variables = append(invalid.Variables, v.Name)
		}
	}

	return invalid
}

// isCause reports whether the value of a variable alone changes more than the fields that contain it. If it is used in
// the default of others that have no value, they have none here either.
func (d *Document) isCause(marked map[string]any, name string, values map[string]string) bool {
	alone := map[string]string{}

	for _, v := range d.Text.Variables() {
		alone[v.Name] = expr.MarkPrefix + v.Name

		if v.IsDerived() && values[v.Name] == "" {
			alone[v.Name] = ""
		}
	}

	alone[name] = values[name]

	content, err := d.expand(alone, limit.NewFile())

	return err != nil || differs(marked, content)
}

// differs reports whether a value differs from a marked one elsewhere than in keys and values with marks.
func differs(marked, value any) bool {
	if text, ok := marked.(string); ok && expr.IsMarked(text) || reflect.DeepEqual(marked, value) {
		return false
	}

	switch marked := marked.(type) {
	case map[string]any:
		object, ok := value.(map[string]any)

		return !ok || differsMap(marked, object)
	case []any:
		list, ok := value.([]any)
		if !ok || len(list) != len(marked) {
			return true
		}

		for i := range marked {
			if differs(marked[i], list[i]) {
				return true
			}
		}

		return false
	}

	return true
}

// differsMap is differs for maps. A key with a mark may have become any other key, but none that the map has anyway.
func differsMap(marked, object map[string]any) bool {
	var expected, found []any

	for key, child := range marked {
		if expr.IsMarked(key) {
			expected = append(expected, child)
		} else if other, ok := object[key]; !ok || differs(child, other) {
			return true
		}
	}

	for key, child := range object {
		if key == "<<" { // which the chart cannot contain
			return true
		}

		if _, same := marked[key]; !same {
			found = append(found, child)
		}
	}

	if len(found) != len(expected) {
		return true
	}

	for i := range found {
		becameFound := func(child any) bool { return !differs(child, found[i]) }
		wasExpected := func(child any) bool { return !differs(expected[i], child) }

		if !slices.ContainsFunc(expected, becameFound) || !slices.ContainsFunc(found, wasExpected) {
			return true
		}
	}

	return false
}
