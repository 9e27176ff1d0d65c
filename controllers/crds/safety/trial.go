package safety

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// trial tries a change on objects, one after the other.
type trial struct {
	crd           string
	pair          *pair
	before, after *validator
	byPath        map[string][]*Finding
}

func newTrial(c *comparison, p *pair) (*trial, error) {
	before, err := newValidator(c.live, p.from)
	if err != nil {
		return nil, err
	}

	after, err := newValidator(c.desired, p.to)
	if err != nil {
		return nil, err
	}

	t := &trial{crd: c.live.Name, pair: p, before: before, after: after, byPath: map[string][]*Finding{}}
	for _, f := range p.findings {
		t.byPath[f.Path] = append(t.byPath[f.Path], f)
	}

	return t, nil
}

// try notes on the findings how the object breaks, and reports whether it does.
func (t *trial) try(ctx context.Context, object *unstructured.Unstructured) bool {
	lost := t.lost(object)
	for _, path := range lost {
		t.finding(path, nil).note(object, path, false)
	}

	errs, stuck := t.refused(ctx, object)
	for _, err := range errs {
		t.finding(place(err), err).note(object, place(err), stuck)
	}

	return len(lost)+len(errs) > 0
}

// lost are the fields of an object that nobody will see again once the change is applied. Defaults
// are no loss.
func (t *trial) lost(object *unstructured.Unstructured) []string {
	content := object.DeepCopy().Object
	t.before.dropDefaults(content)

	return t.after.prune(content)
}

// refused are the reasons that the API server will have to refuse the object when it is created
// again, by a restore, a `clusterctl move` or GitOps, or when these fields of it change. Reasons
// that it has already do not count. Stuck means that it refuses any update of the object, even of
// its finalizers.
func (t *trial) refused(ctx context.Context, object *unstructured.Unstructured) (errs field.ErrorList, stuck bool) {
	after := object.DeepCopy()
	t.after.fill(after.Object)
	t.after.prune(after.Object)

	if errs = t.after.create(ctx, after.Object); len(errs) == 0 {
		return nil, false
	}

	known := t.before.create(ctx, object.Object)

	errs = slices.DeleteFunc(errs, func(e *field.Error) bool {
		return slices.ContainsFunc(known, func(k *field.Error) bool { return place(k) == place(e) && k.Type == e.Type })
	})
	if len(errs) == 0 {
		return nil, false
	}

	touched := after.DeepCopy()
	touched.SetFinalizers(append(touched.GetFinalizers(), v1alpha2.Finalizer))

	return errs, len(t.after.update(ctx, touched.Object, after.Object)) > 0
}

// place is the path of the field that an error is about, empty when that is the object itself.
// Errors about oneOf and its like have it only in their text.
func place(err *field.Error) string {
	if err.Field != (*field.Path)(nil).String() {
		return err.Field
	}

	prefix, _ := strconv.QuotedPrefix(err.Detail)
	path, _ := strconv.Unquote(prefix)

	return strings.Trim(path, ".")
}

// finding is the one that tells of a field being lost, or refused for a reason: of that field, or
// of what it is a part of.
func (t *trial) finding(path string, reason *field.Error) *Finding {
	schema := t.pair.to.Schema
	if reason == nil {
		schema = t.pair.from.Schema
	}

	exact := schemaPath(path, root(schema))
	for at, more := exact, true; more; at, more = parent(at) {
		if f := choose(t.byPath[at], reason, at == exact); f != nil {
			return f
		}
	}

	message := "objects that were valid are not any more"
	if reason == nil {
		message = "the field is dropped"
	}

	f := newFinding(RuleInvalidObject, t.crd, t.pair.from.Name, exact, "%s", message)
	t.pair.findings = append(t.pair.findings, f)
	t.byPath[exact] = append(t.byPath[exact], f)

	return f
}

// choose picks of the findings about one field the one that explains best what happens to an
// object.
func choose(findings []*Finding, reason *field.Error, exact bool) *Finding {
	var best *Finding

	most := 0
	for _, f := range findings {
		if n := f.explains(reason, exact); n > most {
			best, most = f, n
		}
	}

	return best
}

// explains says how well a finding explains that a field is lost (reason nil) or refused: 0 not at
// all.
func (f *Finding) explains(reason *field.Error, exact bool) int {
	t := ruleTraits[f.Rule]
	switch {
	case reason == nil:
		if t.loses {
			return 1
		}

		return 0
	case f.Rule == RuleValidation && strings.HasSuffix(f.Message, quoted(strings.TrimPrefix(reason.Detail, "failed rule: "))):
		return 4
	case (exact || f.Rule == RuleListType) && slices.Contains(t.errors, reason.Type) && strings.Contains(reason.Detail, t.detail):
		return 3
	case t.anyError:
		return 1
	}

	return 0
}

// schemaPath turns the path of an object's field into that of the schema, as far as the schema has
// it.
func schemaPath(path string, s *props) string {
	var at string

	for _, step := range steps(path) {
		property, known := s.Properties[step]
		switch {
		case known:
			at, s = child(at, step), &property
		case s.Items != nil && s.Items.Schema != nil && strings.HasPrefix(step, "["):
			at, s = at+anyItem, s.Items.Schema
		case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
			at, s = at+anyItem, s.AdditionalProperties.Schema
		default:
			return at
		}
	}

	return at
}

// steps of a path: "hosts[2].name" is hosts, [2], name.
func steps(path string) []string {
	var all []string

	for part := range strings.SplitSeq(strings.ReplaceAll(path, "[", ".["), ".") {
		if part != "" {
			all = append(all, part)
		}
	}

	return all
}

// parent of a schema's path; false when it has none.
func parent(path string) (string, bool) {
	if path == "" {
		return "", false
	}

	if rest, found := strings.CutSuffix(path, anyItem); found {
		return rest, true
	}

	return path[:max(0, strings.LastIndex(path, "."))], true
}

func inStatus(path string) bool { return path == "status" || strings.HasPrefix(path, "status.") }
