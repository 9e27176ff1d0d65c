package cluster

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/capstan-project/capstan/controllers/release/policies"
)

// remove deletes objects that are no longer part of the release, all in parallel. If one of them
// prevents the deletion of another, as a webhook without its server may do, the next attempt finds
// it gone. An object counts as deleted once the API server has accepted that, even if finalizers
// still hold it.
func (c *Client) remove(list ResourceList) error {
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
func (c *Client) prune(list ResourceList) error {
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
func (c *Client) removable(manifests []string) (ResourceList, error) {
	lists, err := c.parseAll(manifests)
	if err != nil {
		return nil, err
	}

	return missing(lists, nil).Filter(func(info *resource.Info) bool {
		return !isKept(info.Object.(*unstructured.Unstructured))
	}), nil
}

// HasDropped reports whether the cluster has an object that the release would have deleted when it dropped it from its
// manifest.
func (c *Client) HasDropped(info *resource.Info) (bool, error) {
	if isProtected(KeyOf(info).Kind) {
		return false, nil
	}

	live, err := c.Get(info)
	if err != nil || live == nil {
		return false, err
	}

	return c.owns(live) && !isKept(live) && live.GetDeletionTimestamp() == nil, nil
}

// removeOne deletes an object if it belongs to the release and is not to be kept.
func (c *Client) removeOne(info *resource.Info) error {
	if isProtected(KeyOf(info).Kind) {
		c.addChange(&c.changes.Left, info)
		return nil
	}

	live, err := c.Get(info)
	if err != nil || live == nil {
		return err
	}

	if !c.owns(live) || isKept(live) {
		c.log.Info("Keeping an object that the release must not delete", "object", KeyOf(info).String())
		c.addChange(&c.changes.Left, info)

		return nil
	}

	if policies.IsOrphaned(live) {
		c.log.Info("Leaving an object in the cluster that its policy orphans", "object", KeyOf(info).String())
		c.addChange(&c.changes.Left, info)

		return c.orphan(info)
	}

	if err := c.delete(info, live); err != nil {
		return err
	}

	c.addChange(&c.changes.Pruned, info)

	if finalizers := live.GetFinalizers(); len(finalizers) > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()

		c.held = append(c.held, Remaining{Object: KeyOf(info), Finalizers: finalizers})
	}

	return nil
}

// delete deletes an object. If live is given, it deletes that object only, not one that has
// replaced it. It is not an error if the object does not exist.
func (c *Client) delete(info *resource.Info, live *unstructured.Unstructured) error {
	propagation := metav1.DeletePropagationBackground
	options := &metav1.DeleteOptions{PropagationPolicy: &propagation}

	if live != nil {
		uid := live.GetUID()
		options.Preconditions = &metav1.Preconditions{UID: &uid}
	}

	_, err := c.helper(info).DeleteWithOptions(info.Namespace, info.Name, options)

	return ignoreNotFound(err)
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}

	return err
}
