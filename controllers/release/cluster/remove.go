package cluster

import (
	"errors"

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
	return asRemoveError(c.each(list, c.removeOne))
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

// prune is remove after a target has been applied. The target is in place, so what keeps other objects from being
// deleted is no failure of the action: it is noted, for a later Prune.
func (c *Client) prune(list Objects) error {
	err := c.remove(list)

	if failed := (*RemoveError)(nil); errors.As(err, &failed) {
		c.log.Info("Objects that are no longer part of the release are deleted later", "problem", failed.Error())
		c.unpruned = true

		return nil
	}

	return err
}

// Unpruned reports whether objects that the target does not have are left to be deleted, or may be because of their
// finalizers.
func (c *Client) Unpruned() bool { return c.unpruned || len(c.held) > 0 }

// Prune deletes the objects of older manifests that a manifest does not have. The error is a *RemainingError while
// finalizers hold some of them, and all others are deleted.
func (c *Client) Prune(content string, older []string) error {
	lists, err := c.parseAll(append([]string{content}, older...))
	if err != nil {
		return err
	}

	if err := c.remove(missing(lists[1:], lists[0])); err != nil {
		return err
	}

	return newRemainingError(c.held)
}

// Remove deletes the objects of manifests, which are those of one release, newest first.
func (c *Client) Remove(manifests []string) error {
	list, err := c.removable(manifests)
	if err != nil {
		return err
	}

	return c.remove(list)
}

// removable returns the objects of the manifests of a release that is removed. Objects stay if the manifest asks to
// keep them, and if the object in the cluster does, see removeOne.
func (c *Client) removable(manifests []string) (Objects, error) {
	lists, err := c.parseAll(manifests)
	if err != nil {
		return nil, err
	}

	return missing(lists, nil).filter(func(o *unstructured.Unstructured) bool { return !isKept(o) }), nil
}

// HasDropped reports whether the cluster has an object that the release would have deleted when it dropped it from its
// manifest.
func (c *Client) HasDropped(o *unstructured.Unstructured) (bool, error) {
	if isProtected(o.GetKind()) {
		return false, nil
	}

	live, err := c.Get(o)
	if err != nil || live == nil {
		return false, err
	}

	return c.owns(live) && !isKept(live) && live.GetDeletionTimestamp() == nil, nil
}

// removeOne deletes an object if it belongs to the release and is not to be kept.
func (c *Client) removeOne(o *unstructured.Unstructured) error {
	if isProtected(o.GetKind()) {
		c.addChange(&c.changes.Left, o)
		return nil
	}

	live, err := c.Get(o)
	if err != nil || live == nil {
		return err
	}

	if !c.owns(live) || isKept(live) {
		c.log.Info("Keeping an object that the release must not delete", "object", object.KeyOf(o).String())
		c.addChange(&c.changes.Left, o)

		return nil
	}

	if policies.IsOrphaned(live) {
		c.log.Info("Leaving an object in the cluster that its policy orphans", "object", object.KeyOf(o).String())
		c.addChange(&c.changes.Left, o)

		return c.orphan(o)
	}

	if err := c.delete(live); err != nil {
		return err
	}

	c.addChange(&c.changes.Pruned, o)

	if finalizers := live.GetFinalizers(); len(finalizers) > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()

		c.held = append(c.held, Remaining{Object: object.KeyOf(o), Finalizers: finalizers})
	}

	return nil
}

// delete deletes an object, but not one that has replaced it. It is not an error if it does not exist.
func (c *Client) delete(live *unstructured.Unstructured) error {
	err := c.connection.client.Delete(c.ctx, reference(live),
		client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: ptr.To(live.GetUID())})

	return client.IgnoreNotFound(err)
}
