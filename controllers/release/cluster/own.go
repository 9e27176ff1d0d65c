package cluster

import (
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/kube"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/capstan-project/capstan/controllers/object"
)

// OwnKinds are the kinds that the CRDs of a release define. Objects of these kinds need the release's
// manager: its webhooks admit them, and it processes their finalizers.
type OwnKinds []schema.GroupResource

// includes reports whether an object is of one of the kinds.
func (k OwnKinds) includes(info *resource.Info) bool {
	return slices.Contains(k, info.Mapping.Resource.GroupResource())
}

// Remaining is an object that was deleted, but still exists.
type Remaining struct {
	Object     object.Key
	Finalizers []string
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

	return fmt.Sprintf("%s is being deleted, but its finalizers hold it: %s%s",
		first.Object, strings.Join(first.Finalizers, ", "), object.AndMore(len(e.Objects)-1))
}

// isOther reports whether an object is of no own kind.
func (c *Client) isOther(info *resource.Info) bool { return !c.own.includes(info) }

// IsStaged reports whether Advance has something to do after the target was applied: it has objects of own
// kinds, or those of older manifests have to be deleted.
func (c *Client) IsStaged(older []string) (bool, error) {
	if len(c.target.objects.Filter(c.own.includes)) > 0 {
		return true, nil
	}

	lists, err := c.parseAll(older)
	if err != nil {
		return false, c.fail(err)
	}

	return len(missing(lists, c.target.objects).Filter(c.own.includes)) > 0, nil
}

// Advance completes a manifest whose other objects were applied: it applies those of own kinds, deletes
// those of own kinds that only older manifests have, and once these are gone everything else that only
// older manifests have. It can be repeated until it succeeds. The error is a *RemainingError while objects
// that were deleted still exist.
func (c *Client) Advance(content string, older []string) error {
	bases, err := c.parseAll(older)
	if err != nil {
		return c.fail(err)
	}

	target, _, err := c.parse(content)
	if err != nil {
		return c.fail(err)
	}

	own := target.Filter(c.own.includes)
	for _, info := range own {
		c.AddHelmMetadata(info.Object.(*unstructured.Unstructured))
	}

	if err := c.setTarget(content, own); err != nil {
		return err
	}

	err = c.each(own, func(info *resource.Info) error { return c.applyOne(info, find(bases, info)) })
	if err != nil {
		return c.fail(err)
	}

	dropped := missing(bases, target)
	if err := c.removeCompletely(dropped.Filter(c.own.includes)); err != nil {
		return c.fail(err)
	}

	return c.fail(c.remove(dropped.Filter(c.isOther)))
}

// RemoveOwn deletes the objects of the manifests that are of own kinds. The error is a *RemainingError until
// they are gone, and a *RemoveError if one could not be deleted.
func (c *Client) RemoveOwn(manifests []string) error {
	lists, err := c.parseAll(manifests)
	if err != nil {
		return c.fail(err)
	}

	return c.fail(c.removeCompletely(missing(lists, nil).Filter(c.own.includes)))
}

// parseAll returns the objects of manifests whose kinds exist.
func (c *Client) parseAll(manifests []string) ([]kube.ResourceList, error) {
	lists := make([]kube.ResourceList, 0, len(manifests))

	for _, content := range manifests {
		list, _, err := c.parse(content)
		if err != nil {
			return nil, err
		}

		lists = append(lists, list)
	}

	return lists, nil
}

// removeCompletely deletes objects like remove. The error is a *RemainingError until they are gone.
func (c *Client) removeCompletely(list kube.ResourceList) error {
	var remaining []Remaining

	err := c.each(list, func(info *resource.Info) error {
		if err := c.removeOne(info); err != nil {
			return err
		}

		live, err := c.Get(info)
		if err != nil || live == nil || live.GetDeletionTimestamp() == nil {
			return err // gone, or to be kept
		}

		c.mu.Lock()
		defer c.mu.Unlock()

		remaining = append(remaining, Remaining{Object: KeyOf(info), Finalizers: live.GetFinalizers()})

		return nil
	})
	if err != nil {
		return asRemoveError(err)
	}

	return newRemainingError(remaining)
}
