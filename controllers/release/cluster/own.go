package cluster

import (
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/kube"
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

// RemoveOwn deletes the objects of the manifests that are of the release's own kinds. The error is a
// *RemainingError until they are gone, and a *RemoveError if one could not be deleted.
func (c *Client) RemoveOwn(own OwnKinds, manifests []string) error {
	var lists []kube.ResourceList

	for _, content := range manifests {
		list, _, err := c.parse(content)
		if err != nil {
			return c.fail(err)
		}

		lists = append(lists, list.Filter(own.includes))
	}

	return c.fail(c.removeCompletely(missing(lists, nil)))
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
