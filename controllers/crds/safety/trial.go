package safety

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// changeTrial tries the change of one version on objects, one after the other.
type changeTrial struct {
	crd           string
	outcome       *changeOutcome
	before, after *validator
	// byPath are the outcome's results by the path of their finding.
	byPath map[string][]*result
}

func newChangeTrial(c *comparison, outcome *changeOutcome) (*changeTrial, error) {
	before, err := newValidator(c.live, outcome.from)
	if err != nil {
		return nil, err
	}

	after, err := newValidator(c.desired, outcome.to)
	if err != nil {
		return nil, err
	}

	t := &changeTrial{
		crd:     c.live.Name,
		outcome: outcome,
		before:  before,
		after:   after,
		byPath:  map[string][]*result{},
	}
	for _, r := range outcome.results {
		t.byPath[r.Path] = append(t.byPath[r.Path], r)
	}

	return t, nil
}

// try records how the change breaks an object and reports whether it does.
func (t *changeTrial) try(ctx context.Context, object *unstructured.Unstructured) bool {
	dropped := t.droppedFields(object)
	for _, path := range dropped {
		t.resultFor(path, nil).record(object, path)
	}

	errs, updatesRejected := t.validate(ctx, object)
	for _, err := range errs {
		r := t.resultFor(errorPath(err), err)
		r.record(object, errorPath(err))
		r.UpdatesRejected = r.UpdatesRejected || updatesRejected
	}

	return len(dropped)+len(errs) > 0
}

// droppedFields returns the paths of the fields that an object will lose. Fields with their default
// value do not count.
func (t *changeTrial) droppedFields(object *unstructured.Unstructured) []string {
	content := object.DeepCopy().Object
	t.before.removeDefaults(content)

	return t.after.prune(content)
}

// validate returns the new reasons to reject the object when it is created again, by a restore,
// `clusterctl move` or GitOps, or when these fields of it change. If updatesRejected is true, the
// API server will reject any update of the object, even of its finalizers.
func (t *changeTrial) validate(
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

// resultFor returns the result that explains why a field is dropped, if reason is nil, or rejected:
// the one for the field itself or for the closest field that contains it. If there is none, a new
// result records that the object breaks.
func (t *changeTrial) resultFor(path string, reason *field.Error) *result {
	schema := t.outcome.to.Schema
	if reason == nil {
		schema = t.outcome.from.Schema
	}

	exact := schemaPath(path, rootSchema(schema))

	for at, found := exact, true; found; at, found = parentPath(at) {
		if r := bestExplanation(t.byPath[at], reason, at == exact); r != nil {
			return r
		}
	}

	return t.addUnexplained(exact, reason)
}

func (t *changeTrial) addUnexplained(path string, reason *field.Error) *result {
	message := "valid objects become invalid"
	if reason == nil {
		message = "the field is dropped"
	}

	at := location{crd: t.crd, version: t.outcome.from.Name, path: path}
	r := &result{Finding: at.finding(RuleObjectInvalid, "%s", message)}

	t.outcome.results = append(t.outcome.results, r)
	t.byPath[path] = append(t.byPath[path], r)

	return r
}

// bestExplanation returns the result that explains best what happens to a field, or nil if none
// does.
func bestExplanation(results []*result, reason *field.Error, exact bool) *result {
	var best *result

	bestScore := 0

	for _, r := range results {
		if score := explanationScore(r.Finding, reason, exact); score > bestScore {
			best = r
			bestScore = score
		}
	}

	return best
}

// explanationScore rates how well a finding explains that a field is dropped, if reason is nil, or
// rejected; 0 means not at all. exact means that the finding is about that very field.
func explanationScore(f Finding, reason *field.Error, exact bool) int {
	traits := traitsOf(f.Rule)

	if reason == nil {
		if traits.dropsData {
			return 1
		}

		return 0
	}

	violated := newRulePrefix + quoted(strings.TrimPrefix(reason.Detail, "failed rule: "))
	expected := slices.Contains(traits.errorTypes, reason.Type) && strings.Contains(reason.Detail, traits.errorText)

	switch {
	case f.Rule == RuleValidationRuleAdded && strings.HasSuffix(f.Message, violated):
		return 3
	case expected && (exact || f.Rule == RuleListTypeChanged): // errors about a list may name an item
		return 2
	case traits.anyError:
		return 1
	default:
		return 0
	}
}
