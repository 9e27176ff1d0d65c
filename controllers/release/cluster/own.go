package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/controllers/manifest"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/waves"
)

// OwnKinds are the kinds that the CRDs of a release define. Objects of these kinds need the release's
// manager: its webhooks admit them, and it processes their finalizers.
type OwnKinds []schema.GroupResource

// RemoveOptions are the options of removing a release.
type RemoveOptions struct {
	// Own are the kinds whose objects are deleted first.
	Own OwnKinds
	// AtOnce deletes all objects at the same time: none waits for others to be gone.
	AtOnce bool
}

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
func (c *Client) applied(o *unstructured.Unstructured) waves.Place {
	return waves.OrderOf(o).Applied(c.isOwn(o))
}

// deleted returns where an object comes when it is deleted.
func (c *Client) deleted(o *unstructured.Unstructured) waves.Place {
	return waves.OrderOf(o).Deleted(c.isOwn(o))
}

// FirstWave returns the place of the objects that the action applies itself, and whether Advance has something to do
// afterwards: there are further waves, or objects that are dropped have to be deleted in an order.
func (c *Client) FirstWave() (first waves.Place, more bool) {
	if len(c.target.objects) > 0 {
		first = c.applied(waves.Split(c.target.objects, c.applied)[0][0])
	}

	return first, c.isStaged()
}

// isStaged reports whether there are several waves of objects to apply, or to delete.
func (c *Client) isStaged() bool {
	return len(waves.Split(c.target.objects, c.applied)) > 1 || c.target.later ||
		len(waves.Split(c.dropped, c.deleted)) > 1 || len(c.dropped.filter(c.isOwn)) > 0
}

// Advance takes the next step with a manifest of which the waves up to a place were applied: it applies the next wave
// and returns its place. If there is none, it deletes the objects of an inventory that the manifest does not have, one
// wave after the other. It can be repeated; complete reports whether nothing is left to do. The error is a
// *RemainingError while objects that were deleted still exist.
func (c *Client) Advance(
	content string, known []object.Key, applied waves.Place,
) (next waves.Place, complete bool, err error) {
	c.known = known

	objects, err := manifest.Decode(content)
	if err != nil {
		return applied, false, err
	}

	target, unknown, err := c.resolve(objects)
	if err != nil {
		return applied, false, err
	}

	later := definedEarlier(objects, unknown)
	maps.DeleteFunc(later, func(_ object.Key, place waves.Place) bool { return place <= applied })

	isLater := func(o *unstructured.Unstructured) bool { return c.applied(o) > applied }
	left := waves.Split(target.filter(isLater), c.applied)

	for key, place := range later {
		if len(left) == 0 || place <= c.applied(left[0][0]) {
			return applied, false, &UnavailableError{Objects: []*ObjectError{
				{Object: key, Reason: "the API server does not serve its kind yet"},
			}}
		}
	}

	if len(left) == 0 {
		err := c.removeDropped(target, known)
		return applied, err == nil, err
	}

	if err := c.applyLater(left[0], target); err != nil {
		return applied, false, err
	}

	// What is dropped is read in the next step.
	last := len(left) == 1 && len(later) == 0 && len(object.Without(known, c.has)) == 0

	return c.applied(left[0][0]), last, nil
}

// removeDropped deletes the objects of an inventory that are none of a target's, one wave after the other.
func (c *Client) removeDropped(target Objects, known []object.Key) error {
	c.has = target.keys()
	c.Drop(known)

	return cmp.Or(c.removeInOrder(c.dropped), c.unread)
}

// applyLater applies a wave of a manifest whose earlier waves were applied. It is tried first by dry runs, which may
// have told nothing before the first wave.
func (c *Client) applyLater(wave, all Objects) error {
	if err := c.setTarget(wave, all); err != nil {
		return err
	}

	if err := c.dryRunEach(wave); err != nil {
		return err
	}

	return c.applyWave(wave)
}

// removeInOrder deletes objects, one wave after the other. The error is a *RemainingError until the objects are gone
// that others wait for.
func (c *Client) removeInOrder(list Objects) error {
	last, err := c.removeEarlier(list)
	if err != nil {
		return err
	}

	return c.remove(last)
}

// removeEarlier deletes all waves of objects but the last one, which it returns. Nothing is left of objects of own
// kinds, even if there is nothing else: their manager may be deleted next.
func (c *Client) removeEarlier(list Objects) (last Objects, err error) {
	ordered := waves.Split(list, c.deleted)

	for i, wave := range ordered {
		if i == len(ordered)-1 && !c.isOwn(wave[0]) {
			return wave, nil
		}

		if err := c.removeCompletely(wave); err != nil {
			return nil, err
		}
	}

	return nil, nil
}

// removeCompletely deletes objects like remove. The error is a *RemainingError until they are gone.
func (c *Client) removeCompletely(list Objects) error {
	var remaining []Remaining

	err := c.removeEach(list, func(o *unstructured.Unstructured) error {
		if err := c.removeOne(o); err != nil {
			return err
		}

		live, err := c.get(o)
		if err != nil || live == nil || live.GetDeletionTimestamp() == nil {
			return err // gone, or to be kept
		}

		c.mu.Lock()
		defer c.mu.Unlock()

		remaining = append(remaining, Remaining{Object: object.KeyOf(o), Finalizers: live.GetFinalizers()})

		return nil
	})

	return cmp.Or(err, newRemainingError(remaining))
}
