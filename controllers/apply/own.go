package apply

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/controllers/asks"
	"github.com/capstan-project/capstan/controllers/manifest"
	"github.com/capstan-project/capstan/controllers/object"
)

// OwnKinds are the kinds that the CRDs of a release define. Objects of these kinds need the release's
// manager: its webhooks admit them, and it processes their finalizers.
type OwnKinds []schema.GroupResource

// Remaining is an object that was deleted, but still exists.
type Remaining struct {
	Object     object.Key
	Finalizers []string
}

// Reason says why the object still exists.
func (r Remaining) Reason() string {
	if len(r.Finalizers) == 0 {
		return "is being deleted"
	}

	return "is being deleted, but its finalizers hold it: " + strings.Join(r.Finalizers, ", ")
}

// RemainingError means that objects which have to be gone first still exist. Nothing else was deleted.
type RemainingError struct{ Objects []Remaining }

// newRemainingError returns nil if there are no objects.
func newRemainingError(objects []Remaining) error {
	if len(objects) == 0 {
		return nil
	}

	slices.SortFunc(objects, func(a, b Remaining) int { return strings.Compare(a.Object.String(), b.Object.String()) })

	return &RemainingError{Objects: objects}
}

func (e *RemainingError) Error() string {
	first := e.Objects[0]

	return fmt.Sprintf("%s %s%s", first.Object, first.Reason(), object.AndMore(len(e.Objects)-1))
}

// isOwn reports whether an object is of one of the release's own kinds.
func (c *Client) isOwn(o *unstructured.Unstructured) bool {
	return slices.Contains(c.own, c.resourceOf(o))
}

// applied returns where an object comes when the release is applied.
func (c *Client) applied(o *unstructured.Unstructured) asks.Place {
	return asks.OrderOf(o).Applied(c.isOwn(o))
}

// deleted returns where an object comes when it is deleted.
func (c *Client) deleted(o *unstructured.Unstructured) asks.Place {
	return asks.OrderOf(o).Deleted(c.isOwn(o))
}

// FirstWave returns the place of the objects that the action applies itself, and whether Advance has something to do
// afterwards: there are further waves, or objects that are dropped have to be deleted in an order.
func (s *Set) FirstWave() (first asks.Place, more bool) {
	if len(s.objects) > 0 {
		first = s.applied(asks.Split(s.objects, s.applied)[0][0])
	}

	return first, s.isStaged()
}

// isStaged reports whether there are several waves of objects to apply, or to delete.
func (s *Set) isStaged() bool {
	return len(asks.Split(s.objects, s.applied)) > 1 || len(s.later) > 0 ||
		len(asks.Split(s.dropped, s.deleted)) > 1 || len(s.dropped.filter(s.isOwn)) > 0
}

// Advanced is how far a step has come with a manifest.
type Advanced struct {
	// Wave is the last one that was applied, and Complete is set if nothing is left to do.
	Wave     asks.Place
	Complete bool
	// Inventory are the objects that the release has once nothing is left to do, and those that could not be deleted.
	Inventory []object.Key
	Results   Results
}

// Advance takes the next step with a manifest of which the waves up to a place were applied: it applies the next wave.
// If there is none, it deletes the objects of the release that the manifest does not have, one wave after the other. It
// can be repeated. The error is a *RemainingError while objects that were deleted still exist.
func (c *Client) Advance(content string, applied asks.Place) (Advanced, error) {
	unchanged := Advanced{Wave: applied}

	objects, err := manifest.Decode(content)
	if err != nil {
		return unchanged, err
	}

	target, unknown, err := c.resolve(objects)
	if err != nil {
		return unchanged, err
	}

	later := definedEarlier(objects, unknown)
	maps.DeleteFunc(later, func(_ object.Key, place asks.Place) bool { return place <= applied })

	isLater := func(o *unstructured.Unstructured) bool { return c.applied(o) > applied }
	left := asks.Split(target.filter(isLater), c.applied)

	for key, place := range later {
		if len(left) == 0 || place <= c.applied(left[0][0]) {
			return unchanged, &UnavailableError{Objects: []*ObjectError{
				{Object: key, Reason: "the API server does not serve its kind yet"},
			}}
		}
	}

	draft := c.newDraft(target)

	if len(left) == 0 {
		set := draft.withDropped()
		results, err := c.removeInOrder(set.dropped)
		err = cmp.Or(err, set.unread)

		return Advanced{applied, err == nil, set.Inventory(results), results}, err
	}

	advanced := Advanced{Wave: applied, Inventory: draft.has()}

	if advanced.Results, err = draft.applyLater(left[0]); err != nil {
		return advanced, err
	}

	// What is dropped is read in the next step.
	advanced.Wave = c.applied(left[0][0])
	advanced.Complete = len(left) == 1 && len(later) == 0 && len(object.Without(c.known, draft.has())) == 0

	return advanced, nil
}

// applyLater applies a wave of a manifest whose earlier waves were applied. It is tried first by dry runs, which may
// have told nothing before the first wave.
func (d *Draft) applyLater(wave Objects) (Results, error) {
	if err := d.include(wave); err != nil {
		return nil, err
	}

	if err := d.dryRunEach(wave); err != nil {
		return nil, err
	}

	return d.applyWave(wave)
}

// removeInOrder deletes objects, one wave after the other. The error is a *RemainingError until the objects are gone
// that others wait for. Nothing is left of objects of own kinds, even if there is nothing else: their manager may be
// deleted next.
func (c *Client) removeInOrder(list Objects) (Results, error) {
	var all Results

	ordered := asks.Split(list, c.deleted)

	for i, wave := range ordered {
		remove := c.removeCompletely
		if i == len(ordered)-1 && !c.isOwn(wave[0]) {
			remove = c.remove
		}

		results, err := remove(wave)
		all = append(all, results...)

		if err != nil {
			return all, err
		}
	}

	return all, nil
}

// removeCompletely deletes objects like remove. The error is a *RemainingError until they are gone.
func (c *Client) removeCompletely(list Objects) (Results, error) {
	results, err := c.removeEach(list, func(o *unstructured.Unstructured) (Result, error) {
		result, err := c.removeOne(o)
		if err != nil || result.Outcome != Deleted {
			return result, err
		}

		live, err := c.get(o)
		result.Remaining = err == nil && live != nil && live.GetDeletionTimestamp() != nil

		if result.Remaining {
			result.Finalizers = live.GetFinalizers()
		}

		return result, err
	})
	if err != nil {
		return results, err
	}

	return results, newRemainingError(results.remaining())
}
