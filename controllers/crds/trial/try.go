package trial

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

const (
	remedyObjects = "change the affected objects before the upgrade"
	remedyData    = "move the field's data elsewhere or unset the field before the upgrade"
	remedyClients = "move the clients to another version and rewrite the objects' metadata.managedFields " +
		"before the upgrade"
)

// try tries the change of one version on objects, one after the other.
type try struct {
	version       string
	before, after *validator
}

func newTry(c Change, changed changedVersion) (*try, error) {
	before, err := newValidator(c.Live, changed.from)
	if err != nil {
		return nil, err
	}

	after, err := newValidator(c.Desired, changed.to)
	if err != nil {
		return nil, err
	}

	return &try{version: changed.from.Name, before: before, after: after}, nil
}

// problem is a finding about one field of an object.
type problem struct {
	Finding
	// field is its path, such as "spec.hosts[2].address".
	field string
}

// problems returns how the change breaks an object.
func (t *try) problems(ctx context.Context, object *unstructured.Unstructured) []problem {
	dropped := t.droppedFields(object)
	errs, updatesRejected := t.validate(ctx, object)
	problems := make([]problem, 0, len(dropped)+len(errs))

	for _, path := range dropped {
		problems = append(problems, problem{field: path, Finding: Finding{
			Version: t.version,
			Path:    schemaPath(path, t.before.structural),
			Message: "the field is dropped",
			Remedy:  remedyData,
		}})
	}

	for _, err := range errs {
		problems = append(problems, problem{field: errorPath(err), Finding: Finding{
			Version:         t.version,
			Path:            schemaPath(errorPath(err), t.after.structural),
			Message:         reason(err),
			Remedy:          remedyObjects,
			UpdatesRejected: updatesRejected,
		}})
	}

	return problems
}

// droppedFields returns the paths of the fields that an object will lose. Fields with their default
// value do not count.
func (t *try) droppedFields(object *unstructured.Unstructured) []string {
	content := object.DeepCopy().Object
	t.before.removeDefaults(content)

	return t.after.prune(content)
}

// validate returns the new reasons to reject the object when it is created again, by a restore,
// `clusterctl move` or GitOps, or when these fields of it change. If updatesRejected is true, the
// API server will reject any update of the object, even of its finalizers.
func (t *try) validate(
	ctx context.Context,
	object *unstructured.Unstructured,
) (errs field.ErrorList, updatesRejected bool) {
	after := object.DeepCopy()
	t.after.setDefaults(after.Object)
	t.after.prune(after.Object)

	errs = t.after.validateCreate(ctx, after.Object)
	if len(errs) == 0 {
		return nil, false
	}

	errs = newErrors(errs, t.before.validateCreate(ctx, object.Object))
	if len(errs) == 0 {
		return nil, false
	}

	touched := after.DeepCopy()
	touched.SetFinalizers(append(touched.GetFinalizers(), v1alpha2.Finalizer))

	updateErrors := t.after.validateUpdate(ctx, touched.Object, after.Object)

	return errs, len(updateErrors) > 0
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
		return "the value is no longer valid: " + quoted(detail)
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

// maxQuoted is how much of a definition's own text, such as a rule, a message quotes.
const maxQuoted = 240

// quoted returns text from a definition or an error in one line of limited length.
func quoted(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= maxQuoted {
		return text
	}

	return strings.ToValidUTF8(text[:maxQuoted], "") + "…"
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

// inStatus reports whether a path is that of the status or a part of it.
func inStatus(path string) bool { return path == "status" || strings.HasPrefix(path, "status.") }
