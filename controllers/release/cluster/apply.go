package cluster

import (
	"context"
	"errors"

	"helm.sh/helm/v3/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/capstan-project/capstan/controllers/retry"
)

// apply applies the target's objects, kind by kind in Helm's order, and deletes those that only the
// original or an incomplete revision has. It stops after the first kind of which an object fails,
// so that nothing is changed that may depend on it.
//
// Objects of the release's own kinds are left to Advance. If any of them has to be deleted, so is everything
// else that has to be.
func (c *Client) apply(original, target kube.ResourceList) error {
	incomplete, err := c.incompleteObjects()
	if err != nil {
		return err
	}

	bases := append([]kube.ResourceList{original}, incomplete...)

	for _, wave := range waves(target.Filter(c.isOther)) {
		err := c.each(wave, func(info *resource.Info) error { return c.applyOne(info, find(bases, info)) })
		if err != nil {
			return err
		}
	}

	dropped := missing(bases, target)
	if len(dropped.Filter(c.own.includes)) > 0 {
		return nil
	}

	return c.prune(dropped)
}

// applyOne creates or changes an object. The bases are the object as earlier revisions define it:
// fields that any of them sets and the target does not are removed. An object without a base is
// adopted.
func (c *Client) applyOne(info *resource.Info, bases []runtime.Object) error {
	live := c.target.live[info]

	if live == nil {
		created, err := c.create(info)
		if err == nil {
			c.addApplied(info, created.(*unstructured.Unstructured))
			return nil
		}

		if !apierrors.IsAlreadyExists(err) {
			return err
		}

		// Another program has created it since it was read, or this one, without getting the answer.
		if live, err = c.getOwn(info); err != nil {
			return err
		}

		if live == nil {
			return errors.New("another program created and deleted it at the same time")
		}
	}

	if live.GetDeletionTimestamp() != nil {
		return errors.New(deletionMessage(live))
	}

	if len(bases) == 0 {
		bases = adoptionBases(info, live)

		if ownerOf(live) == "" {
			c.addChange(&c.changes.Adopted, info)
		}
	}

	for _, base := range bases {
		patched, err := c.patch(info, base, live)
		if err != nil {
			return err
		}

		live = patched
	}

	c.addApplied(info, live)

	return nil
}

// patch returns the object as it is after the change.
func (c *Client) patch(info *resource.Info, base runtime.Object, live *unstructured.Unstructured) (
	*unstructured.Unstructured, error,
) {
	patch, err := NewPatch(info, base, live)
	if err != nil || patch == nil {
		return live, err
	}

	patched, err := c.helper(info).Patch(info.Namespace, info.Name, patch.Type, patch.Data, nil)

	switch {
	case apierrors.IsNotFound(err): // deleted since it was read
		patched, err = c.create(info)
	case apierrors.IsInvalid(err) && c.needsReplacement(info):
		patched, err = c.replace(info, live, err)
	}

	if err != nil {
		return nil, err
	}

	return patched.(*unstructured.Unstructured), nil
}

// create creates an object. The transport does not repeat creations, because most callers take an object
// that exists for another program's.
func (c *Client) create(info *resource.Info) (created runtime.Object, err error) {
	err = retry.Do(context.Background(), func() (again bool, err error) {
		created, err = c.helper(info).Create(info.Namespace, true, info.Object)

		return retry.IsPassing(err), err
	})

	return created, err
}

// Restore makes objects what the release defines: it creates those that are missing from live and
// changes the others.
func (c *Client) Restore(list kube.ResourceList, live map[*resource.Info]*unstructured.Unstructured) error {
	c.target.objects = list
	c.target.live = live

	return c.each(list, func(info *resource.Info) error {
		return c.applyOne(info, []runtime.Object{info.Object})
	})
}
