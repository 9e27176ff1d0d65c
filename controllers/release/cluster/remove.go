package cluster

import (
	"cmp"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/policies"
)

// remove deletes objects that are no longer part of the release, all in parallel. If one of them
// prevents the deletion of another, as a webhook without its server may do, the next attempt finds
// it gone. An object counts as deleted once the API server has accepted that, even if finalizers
// still hold it.
func (c *Client) remove(list Objects) error {
	return c.removeEach(list, c.removeOne)
}

// removeEach calls a function that deletes an object for all objects in parallel, but for aggregated ClusterRoles first:
// when one that they gather rules from is deleted, Kubernetes applies the rest of the rules, and would create them again.
func (c *Client) removeEach(list Objects, remove func(*unstructured.Unstructured) error) error {
	aggregated := list.filter(isAggregated)
	others := list.filter(func(o *unstructured.Unstructured) bool { return !isAggregated(o) })

	failed := c.each(aggregated, remove)

	return asRemoveError(cmp.Or(failed, c.each(others, remove)))
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

// Drop reads the objects of an inventory that the target does not have, as far as they exist and belong to the release:
// an inventory alone deletes nothing.
func (c *Client) Drop(known []object.Key) {
	c.dropped, c.unread = c.existing(known, c.has)

	if failed := (*RemoveError)(nil); errors.As(c.unread, &failed) {
		for _, o := range failed.Objects {
			c.undeleted = append(c.undeleted, o.Object)
		}
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

	live := make(Objects, len(list))

	errs := forEach(list, func(o *unstructured.Unstructured) error {
		found, err := c.get(o)
		if err == nil && found != nil && c.owns(found) {
			live[slices.Index(list, o)] = found
		}

		return err
	})

	for i, err := range errs {
		if err != nil {
			failed = append(failed, newObjectError(object.KeyOf(list[i]), err))
		}
	}

	existing := live.filter(func(o *unstructured.Unstructured) bool { return o != nil })
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

// prune deletes what the target drops after it has been applied. The target is in place, so what keeps other objects
// from being deleted is no failure of the action: they stay in the inventory, for a later Prune.
func (c *Client) prune() error {
	err := cmp.Or(c.remove(c.dropped), c.unread)

	if failed := (*RemoveError)(nil); errors.As(err, &failed) {
		c.log.Info("Objects that are no longer part of the release are deleted later", "problem", failed.Error())
		return nil
	}

	return err
}

// Inventory returns the objects that the release has once the target is applied and what it drops is deleted: those of
// the target, and those that could not be deleted, or that finalizers held.
func (c *Client) Inventory() []object.Key {
	return object.Union(c.has, c.undeleted)
}

// Applied returns the inventory after Apply. What Apply has left to Advance stays in it.
func (c *Client) Applied(known []object.Key) []object.Key {
	if c.isStaged() {
		return known
	}

	return c.Inventory()
}

// Prune deletes the objects of an inventory that a manifest does not have. The error is a *RemainingError while
// finalizers hold some of them, and all others are deleted.
func (c *Client) Prune(content string, known []object.Key) error {
	list, err := c.parse(content)
	if err != nil {
		return err
	}

	c.has = list.keys()
	c.Drop(known)

	return cmp.Or(c.remove(c.dropped), c.unread, newRemainingError(c.held))
}

// Remove deletes the objects of an inventory, in the order of their annotations, and those of own kinds first.
// The error is a *RemainingError while objects exist that others wait for.
func (c *Client) Remove(known []object.Key, options RemoveOptions) error {
	list, unread := c.existing(known, nil)

	if options.AtOnce {
		return cmp.Or(c.remove(list), unread)
	}

	c.own = options.Own

	return cmp.Or(c.removeInOrder(list), unread)
}

// Undo deletes the objects that the client has created.
func (c *Client) Undo() error {
	list, unread := c.existing(c.created, nil)
	return cmp.Or(c.remove(list), unread)
}

// Remains reports whether an object of an inventory exists, belongs to the release, and is not being deleted.
func (c *Client) Remains(known []object.Key) (bool, error) {
	list, unread := c.existing(known, nil)
	remains := slices.ContainsFunc(list, func(live *unstructured.Unstructured) bool {
		return live.GetDeletionTimestamp() == nil && !isKept(live) && !isProtected(live.GetKind())
	})

	return remains, unread
}

// removeOne deletes an object, which was read, unless it must stay.
func (c *Client) removeOne(live *unstructured.Unstructured) error {
	if isProtected(live.GetKind()) || isKept(live) || policies.IsOrphaned(live) {
		return c.leave(live)
	}

	if err := c.delete(live); err != nil {
		c.addChange(&c.undeleted, live)
		return err
	}

	c.addChange(&c.changes.Pruned, live)

	if finalizers := live.GetFinalizers(); len(finalizers) > 0 {
		c.addChange(&c.undeleted, live)

		c.mu.Lock()
		defer c.mu.Unlock()

		c.held = append(c.held, Remaining{Object: object.KeyOf(live), Finalizers: finalizers})
	}

	return nil
}

// leave leaves an object in the cluster that must not be deleted. It does not belong to the release any more, so that
// another one can adopt it; like a deletion, that is tried again if it fails.
func (c *Client) leave(live *unstructured.Unstructured) error {
	if err := c.orphan(live); err != nil {
		c.addChange(&c.undeleted, live)
		return &leaveError{cause: err}
	}

	c.log.Info("Left an object in the cluster that the release must not delete", "object", object.KeyOf(live).String())
	c.addChange(&c.changes.Left, live)

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
