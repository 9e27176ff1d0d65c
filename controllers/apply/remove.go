package apply

import (
	"cmp"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/controllers/asks"
	"github.com/capstan-project/capstan/controllers/object"
)

// remove deletes objects that are no longer part of the release, all in parallel. If one of them
// prevents the deletion of another, as a webhook without its server may do, the next attempt finds
// it gone. An object counts as deleted once the API server has accepted that, even if finalizers
// still hold it.
func (c *Client) remove(list Objects) (Results, error) {
	return c.removeEach(list, c.removeOne)
}

// removeEach calls a function that deletes an object for all objects in parallel, but for aggregated ClusterRoles
// first: when one is deleted that they gather rules from, Kubernetes applies the rest of the rules, and would create
// them again.
func (c *Client) removeEach(
	list Objects, remove func(*unstructured.Unstructured) (Result, error),
) (Results, error) {
	aggregated := list.filter(isAggregated)
	others := list.filter(func(o *unstructured.Unstructured) bool { return !isAggregated(o) })

	results, failed := c.change(aggregated, remove)
	rest, err := c.change(others, remove)

	return append(results, rest...), asRemoveError(cmp.Or(failed, err))
}

// asRemoveError returns the error of a deletion for that of a request.
func asRemoveError(err error) error {
	var (
		rejected    *RejectedError
		unavailable *UnavailableError
	)

	switch {
	case errors.As(err, &rejected):
		return &RemoveError{Objects: rejected.Objects}
	case errors.As(err, &unavailable):
		return &RemoveError{Objects: unavailable.Objects, Passing: true}
	default:
		return err
	}
}

// existing returns the objects of an inventory that exist and belong to the release, as they are in the cluster, except
// for some. The error is a *RemoveError with those that cannot be read, besides which the others are returned.
func (c *Client) existing(known, except []object.Key) (Objects, error) {
	var (
		resolved []object.Key
		failed   []*ObjectError
	)

	for _, key := range object.Without(known, except) {
		found, err := c.resolveKey(key)

		switch {
		case meta.IsNoMatchError(err): // nor are there objects
		case err != nil:
			failed = append(failed, newObjectError(key, err))
		default:
			resolved = append(resolved, found)
		}
	}

	// When an entry was made, it may have been unknown that its kind has namespaces, so that it names the object of
	// another entry.
	resolved = object.Union(object.Without(resolved, except), nil)
	list := make(Objects, 0, len(resolved))

	for _, key := range resolved {
		list = append(list, referenceTo(key))
	}

	live, errs := forEach(list, func(o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		found, err := c.get(o)
		if err != nil || found == nil || !c.owns(found) {
			return nil, err
		}

		return found, nil
	})

	for i, err := range errs {
		if err != nil {
			failed = append(failed, newObjectError(object.KeyOf(list[i]), err))
		}
	}

	existing := Objects(live).filter(func(o *unstructured.Unstructured) bool { return o != nil })
	if len(failed) > 0 {
		return existing, &RemoveError{Objects: failed}
	}

	return existing, nil
}

// resolveKey returns the key of an object of an inventory as the API server knows it: in another version of its kind if
// that is not served any more.
func (c *Client) resolveKey(key object.Key) (object.Key, error) {
	mapping, err := c.connection.Mapping(key.GroupVersionKind)
	if meta.IsNoMatchError(err) {
		mapping, err = c.connection.mapper.RESTMapping(key.GroupKind())
	}

	if err != nil {
		return key, err
	}

	key.GroupVersionKind = mapping.GroupVersionKind
	if key.Namespace == "" && mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		key.Namespace = c.release.Namespace
	}

	return key, nil
}

// prune deletes what is dropped after the objects have been applied. These are in place, so what keeps others from
// being deleted is no failure of the action: they stay in the inventory, for a later Prune.
func (s *Set) prune() (Results, error) {
	results, err := s.remove(s.dropped)

	if failed := (*RemoveError)(nil); errors.As(cmp.Or(err, s.unread), &failed) {
		s.log.Info("Objects that are no longer part of the release are deleted later", "problem", failed.Error())
		return results, nil
	}

	return results, err
}

// Inventory returns the objects that the release has after an action on the set: those of the manifest, and those that
// could not be deleted, or that finalizers held.
func (s *Set) Inventory(results Results) []object.Key {
	undeleted := results.undeleted()

	if failed := (*RemoveError)(nil); errors.As(s.unread, &failed) {
		for _, o := range failed.Objects {
			undeleted = append(undeleted, o.Object)
		}
	}

	return object.Union(s.has(), undeleted)
}

// InventoryBefore returns the objects that the release may have once the set is being applied.
func (s *Set) InventoryBefore() []object.Key { return object.Union(s.Inventory(nil), s.known) }

// InventoryAfter returns the objects that the release has after Apply. What that has left to Advance stays among them.
func (s *Set) InventoryAfter(results Results) []object.Key {
	if s.isStaged() {
		return s.InventoryBefore()
	}

	return s.Inventory(results)
}

// Prune deletes the objects of the release that a manifest does not have, and returns those that it has afterwards. The
// error is a *RemainingError while finalizers hold some of them, and all others are deleted.
func (c *Client) Prune(content string) (Results, []object.Key, error) {
	list, err := c.parse(content)
	if err != nil {
		return nil, nil, err
	}

	set := c.newDraft(list).withDropped()
	results, err := c.remove(set.dropped)

	return results, set.Inventory(results), cmp.Or(err, set.unread, newRemainingError(results.remaining()))
}

// Remove deletes the objects of the release, in the order of their annotations, and those of own kinds first. The error
// is a *RemainingError while objects exist that others wait for. At once, none waits for others to be gone.
func (c *Client) Remove(atOnce bool) (Results, error) {
	list, unread := c.existing(c.known, nil)

	remove := c.removeInOrder
	if atOnce {
		remove = c.remove
	}

	results, err := remove(list)

	return results, cmp.Or(err, unread)
}

// Undo deletes the objects that an action has created.
func (c *Client) Undo(results Results) error {
	list, unread := c.existing(results.keys(func(r Result) bool { return r.Outcome == Created }), nil)
	_, err := c.remove(list)

	return cmp.Or(err, unread)
}

// Remains reports whether an object of the release exists, and is not being deleted.
func (c *Client) Remains() (bool, error) {
	list, unread := c.existing(c.known, nil)

	return slices.ContainsFunc(list, remains), unread
}

// remains reports whether an object would be gone, or about to be, if its release had been uninstalled.
func remains(live *unstructured.Unstructured) bool {
	return live.GetDeletionTimestamp() == nil && !isKept(live) && !isProtected(live.GetKind())
}

// removeOne deletes an object, which was read, unless it must stay.
func (c *Client) removeOne(live *unstructured.Unstructured) (Result, error) {
	if isProtected(live.GetKind()) || isKept(live) || asks.IsOrphaned(live) {
		return Result{Outcome: Left}, c.leave(live)
	}

	finalizers := live.GetFinalizers()

	return Result{Outcome: Deleted, Remaining: len(finalizers) > 0, Finalizers: finalizers}, c.delete(live)
}

// leave leaves an object in the cluster that must not be deleted. It does not belong to the release any more, so that
// another one can adopt it; like a deletion, that is tried again if it fails.
func (c *Client) leave(live *unstructured.Unstructured) error {
	if err := c.orphan(live); err != nil {
		return &leaveError{cause: err}
	}

	c.log.Info("Left an object in the cluster that the release must not delete", "object", object.KeyOf(live).String())

	return nil
}

// leaveError means that an object which stays could not be removed from the release.
type leaveError struct{ cause error }

func (e *leaveError) Error() string { return e.cause.Error() }

// Unwrap returns the API server's error.
func (e *leaveError) Unwrap() error { return e.cause }

// delete deletes an object, but not one that has replaced it. It is not an error if it does not exist.
func (c *Client) delete(live *unstructured.Unstructured) error {
	err := c.connection.client.Delete(c.ctx, reference(live),
		client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: ptr.To(live.GetUID())})

	return client.IgnoreNotFound(err)
}
