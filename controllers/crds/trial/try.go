package trial

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/capstan-project/capstan/controllers/object"
)

const (
	remedyObjects = "change the affected objects before the upgrade"
	remedyData    = "move the field's data elsewhere or unset the field before the upgrade"
	remedyClients = "move the clients to another version and rewrite the objects' metadata.managedFields " +
		"before the upgrade"

	// maxQuoted is how much of a schema's own text, such as a rule, a message quotes.
	maxQuoted = 240
)

// try tries the change of one version on objects, one after the other.
type try struct {
	version       string
	before, after *validator
}

// newTries returns the tries of objects that are read in one version and have to fit others.
func newTries(
	c Change,
	from *apiextensionsv1.CustomResourceDefinitionVersion,
	to []*apiextensionsv1.CustomResourceDefinitionVersion,
) ([]*try, error) {
	var tries []*try

	for _, version := range to {
		before, err := newValidator(c.Live, from)
		if err != nil {
			return nil, err
		}

		after, err := newValidator(c.Desired, version)
		if err != nil {
			return nil, err
		}

		tries = append(tries, &try{version: from.Name, before: before, after: after})
	}

	return tries, nil
}

// problems returns how the change breaks an object. A status that breaks does not count: its controller writes it
// again.
func (t *try) problems(ctx context.Context, object *unstructured.Unstructured) []Problem {
	var problems []Problem

	add := func(p Problem) {
		if p.Path != "status" && !strings.HasPrefix(p.Path, "status.") {
			problems = append(problems, p)
		}
	}

	for _, path := range t.droppedFields(object) {
		add(Problem{
			Version: t.version,
			Path:    schemaPath(path, t.before.structural),
			Message: "the field is dropped",
			Remedy:  remedyData,
		})
	}

	for _, err := range t.validate(ctx, object) {
		add(Problem{
			Version: t.version,
			Path:    schemaPath(errorPath(err), t.after.structural),
			Message: reason(err),
			Remedy:  remedyObjects,
		})
	}

	return problems
}

// droppedFields returns the paths of the fields that an object will lose. Fields with their default
// value do not count.
func (t *try) droppedFields(object *unstructured.Unstructured) []string {
	content := object.DeepCopy().Object
	removeDefaults(content, t.before.structural)

	return t.after.prune(content)
}

// validate returns the new reasons to reject the object when it is created again, by a restore,
// `clusterctl move` or GitOps, or when these fields of it change.
func (t *try) validate(ctx context.Context, object *unstructured.Unstructured) field.ErrorList {
	after := object.DeepCopy().Object
	t.after.setDefaults(after)
	t.after.prune(after)

	errs := t.after.validate(ctx, after)
	if len(errs) == 0 {
		return nil
	}

	return newErrors(errs, t.before.validate(ctx, object.Object))
}

// newErrors returns the errors that are not among those of the old schema.
func newErrors(errs, old field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(errs, func(e *field.Error) bool {
		return slices.ContainsFunc(old, func(known *field.Error) bool {
			return errorPath(known) == errorPath(e) && known.Type == e.Type
		})
	})
}

// reason returns why the new schema rejects a field, without the field's value. Most texts of the API server name the
// limit, such as "should be at least 2 chars long", and some also the value.
func reason(err *field.Error) string {
	_, detail, found := strings.Cut(err.Detail, " in body ")
	if !found {
		detail = err.Detail
	}

	switch {
	case err.Type == field.ErrorTypeRequired:
		return "the field is required"
	case err.Type == field.ErrorTypeTypeInvalid:
		return "the field has another type"
	case err.Type == field.ErrorTypeDuplicate:
		return "the item is repeated"
	case detail == "", quotes(detail, err.BadValue):
		return "the value is no longer valid"
	default:
		return "the value is no longer valid: " + object.OneLine(detail, maxQuoted)
	}
}

// quotes reports whether a text contains a value, such as a word or a number.
func quotes(text string, value any) bool {
	switch value := value.(type) {
	case string:
		return value != "" && strings.Contains(text, value)
	case nil, map[string]any, []any, bool:
		return false
	default:
		return strings.Contains(text, fmt.Sprint(value))
	}
}

// errorPath returns the path of the field that an error is about; empty if it is about the object.
func errorPath(err *field.Error) string {
	if err.Field != (*field.Path)(nil).String() {
		return err.Field
	}

	// Errors about oneOf and the like have the path only in their text, in quotes.
	prefix, _ := strconv.QuotedPrefix(err.Detail)
	path, _ := strconv.Unquote(prefix)

	return strings.Trim(path, ".")
}

// schemaPath returns the path of an object's field as the schema has it, as far as the schema defines it: items of
// lists and values of maps are [*], so that "spec.hosts[2].address" becomes "spec.hosts[*].address".
func schemaPath(path string, s *structuralschema.Structural) string {
	const anyItem = "[*]"

	var at string

	for _, step := range strings.FieldsFunc(strings.ReplaceAll(path, "[", ".["), func(r rune) bool { return r == '.' }) {
		property, known := s.Properties[step]

		switch {
		case known:
			at = strings.TrimPrefix(at+"."+step, ".")
			s = &property
		case s.Items != nil && strings.HasPrefix(step, "["):
			at += anyItem
			s = s.Items
		case s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil:
			at += anyItem
			s = s.AdditionalProperties.Structural
		default:
			return at
		}
	}

	return at
}
