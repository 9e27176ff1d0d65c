package apply

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/controllers/asks"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/objectdiff"
)

// DryRun tries by dry runs what the action would change about the objects. The error is a *DryRunError
// if the API server would refuse a change, and an *UnavailableError if that could not be found out for a reason that
// may go away by itself.
//
// Of objects that wait for earlier waves, only what these cannot change is a problem. Objects of own kinds are left out
// if their CRDs change first.
func (d *Draft) DryRun(withOwn bool) error {
	changing := d.objects.filter(func(o *unstructured.Unstructured) bool { return d.members[o].changes() })
	isTried := func(o *unstructured.Unstructured) bool { return withOwn || !d.isOwn(o) }

	others := changing.filter(func(o *unstructured.Unstructured) bool { return !isTried(o) })
	if err := d.readEach(others); err != nil {
		return asDryRunError(err)
	}

	return asDryRunError(d.dryRunEach(changing.filter(isTried)))
}

// asDryRunError returns what a refusal means before anything is recorded or applied: an account that may not even read
// an object would be refused to change it, too.
func asDryRunError(err error) error {
	if refused := (*RejectedError)(nil); errors.As(err, &refused) {
		return &DryRunError{Objects: refused.Objects}
	}

	return err
}

// dryRunEach tries objects that the action applies.
func (d *Draft) dryRunEach(checked Objects) error {
	if len(checked) == 0 {
		return nil
	}

	first := asks.Split(d.objects, d.applied)[0]

	return d.each(checked, func(o *unstructured.Unstructured) error {
		change := dryRunChange{
			later:   d.applied(o) > d.applied(first[0]),
			defined: d.isDefinedEarlier(o),
			brings:  d.brings,
		}

		trial, err := d.dryRunOne(o)
		d.members[o].unchanged = trial.Snapshot

		return change.problem(err)
	})
}

// isSame reports whether an object does not change if it is applied, and Capstan owns the same fields as before.
func (c *Client) isSame(o, live, after *unstructured.Unstructured) bool {
	before, applied := object.SnapshotOf(object.KeyOf(o), live), object.SnapshotOf(object.KeyOf(o), after)

	return before.Same(applied) && appliedFields(live).Equals(appliedFields(after)) && c.takeoverOf(live, o, nil) == nil
}

// isDefinedEarlier reports whether an earlier wave of the action has the CRD of an object.
func (d *Draft) isDefinedEarlier(o *unstructured.Unstructured) bool {
	return slices.ContainsFunc(d.objects, func(crd *unstructured.Unstructured) bool {
		return crd.GroupVersionKind().GroupKind() == crdKind &&
			crd.GetName() == d.resourceOf(o).String() && d.applied(crd) < d.applied(o)
	})
}

// Trial is the result of a dry run with one object. Its snapshot is zero unless the object would not change.
type Trial struct {
	Result
	// Before is the object in the cluster; nil if it does not exist. After has what the API server adds, unless the object
	// would be replaced.
	Before, After *unstructured.Unstructured
}

// dryRunOne is applyOne as a dry run.
func (d *Draft) dryRunOne(o *unstructured.Unstructured) (Trial, error) {
	live := d.members[o].live
	if live == nil {
		created, err := d.create(d.connection.trial, o)
		if err == nil {
			return Trial{Result: Result{Object: object.KeyOf(o), Outcome: Created}, After: created}, nil
		}

		// Other programs may have created it, or a release whose inventory was lost.
		found, readErr := d.read(o)
		if found == nil {
			return Trial{}, cmp.Or(readErr, err)
		}

		live = found
	}

	if live.GetDeletionTimestamp() != nil {
		return Trial{}, errors.New(deletionMessage(live))
	}

	if d.isLeft(o, live) {
		return d.trialOf(live, Result{Outcome: Unchanged}, live), nil
	}

	tried, err := d.try(o, live)
	if immutable := new(immutableError); errors.As(err, &immutable) {
		replaced := Result{Outcome: Replaced, Reason: object.Reason(o.GetKind(), immutable.refusal)}
		return d.trialOf(live, replaced, o), checkReplacement(o, live, immutable.refusal)
	}

	if err != nil {
		return Trial{}, err
	}

	if d.isSame(o, live, tried.after) {
		return d.trialOf(live, Result{Outcome: Unchanged}, tried.after), nil
	}

	return d.trialOf(live, Result{Outcome: Updated, Removed: tried.fields}, tried.after), nil
}

// trialOf returns the result of a dry run with an object that exists, before and after it.
func (c *Client) trialOf(before *unstructured.Unstructured, result Result, after *unstructured.Unstructured) Trial {
	result.Object = object.KeyOf(before)
	result.Adopted = !c.owns(before)

	if result.Outcome == Unchanged {
		result.Snapshot = object.SnapshotOf(result.Object, before)
	}

	return Trial{Result: result, Before: before, After: after}
}

// try returns what would become of an object that exists if it was applied. Fields of other installers are still in it
// when the API server tries that, so it is asked about the result without them, too.
func (c *Client) try(o, live *unstructured.Unstructured) (*settlement, error) {
	after, err := c.send(c.connection.trial, o, live)

	if taken := c.takeoverOf(live, o, nil); err == nil && taken != nil && len(taken.removed) > 0 {
		after, err = c.tryReplacing(live, taken.without(after))
	}

	if err != nil {
		return c.settle(o, live, err)
	}

	return &settlement{after: after}, nil
}

// bookkeeping are the fields of an object that are not its content.
var bookkeeping = []string{"apiVersion", "kind", "metadata", "status"}

// tryReplacing replaces all of an object but its status and bookkeeping in a dry run.
func (c *Client) tryReplacing(live, with *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	replace := func(path string, value any) map[string]any {
		return map[string]any{"op": "add", "path": path, "value": value}
	}

	changes := []map[string]any{
		replace("/metadata/labels", with.GetLabels()),
		replace("/metadata/annotations", with.GetAnnotations()),
		replace("/metadata/ownerReferences", with.GetOwnerReferences()),
	}

	fields := maps.Clone(live.Object)
	maps.Copy(fields, with.Object)

	for field := range fields {
		if !slices.Contains(bookkeeping, field) {
			changes = append(changes, replace(objectdiff.Child("", field), with.Object[field]))
		}
	}

	return c.patch(c.connection.trial, live, types.JSONPatchType, changes)
}

// PreviewAdoption finds out by dry runs what would become of objects if they were applied without having been
// installed by the release before. Objects whose kinds are not served are left out. The error is a
// *ConflictError if an object belongs to another release, and otherwise one of those of an action.
func (c *Client) PreviewAdoption(objects []*unstructured.Unstructured) ([]Trial, error) {
	list, _, err := c.resolve(objects)
	if err != nil {
		return nil, err
	}

	draft := c.newDraft(list)
	if err := draft.include(list); err != nil {
		return nil, err
	}

	trials, errs := forEach(list, draft.dryRunOne)

	return trials, c.aggregate(list, errs)
}
