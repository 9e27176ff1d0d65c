package cluster

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/capstan-project/capstan/controllers/release/policies"
	"github.com/capstan-project/capstan/controllers/release/waves"
)

// Apply applies the first wave of the target's objects, and deletes those that only older manifests have. If there are
// more waves, of objects to apply or to delete, both are left to Advance.
func (c *Client) Apply(older []string) error {
	bases, err := c.parseAll(older)
	if err != nil {
		return err
	}

	if ordered := waves.Split(c.target.objects, c.applied); len(ordered) > 0 {
		if err := c.applyWave(ordered[0], bases); err != nil {
			return err
		}
	}

	dropped := missing(bases, c.target.objects)
	if c.isStaged(c.target.objects, dropped) {
		return nil
	}

	return c.prune(dropped)
}

// applyWave applies the objects of one wave, kind by kind in Helm's order. It stops after the first kind of which an
// object fails, so that nothing is changed that may depend on it.
func (c *Client) applyWave(wave ResourceList, bases []ResourceList) error {
	for _, kind := range byKind(wave) {
		err := c.each(kind, func(info *resource.Info) error { return c.applyOne(info, find(bases, info)) })
		if err != nil {
			return err
		}
	}

	return nil
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

	if c.isLeft(info, live) {
		c.addApplied(info, live)
		return nil
	}

	if len(bases) == 0 {
		bases = c.adoptionBases(info, live)

		if !c.owns(live) {
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

// isLeft reports whether an object that exists stays as it is, because it is applied only once.
func (c *Client) isLeft(info *resource.Info, live *unstructured.Unstructured) bool {
	return c.owns(live) && policies.IsAppliedOnce(info.Object.(*unstructured.Unstructured))
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

// create creates an object, and first its namespace if that does not exist and the policy of the object asks for it.
func (c *Client) create(info *resource.Info) (created runtime.Object, err error) {
	created, err = c.helper(info).Create(info.Namespace, true, info.Object)
	if !c.createsNamespace(info, err) {
		return created, err
	}

	namespace, err := c.namespaceOf(info)
	if err != nil {
		return nil, err
	}

	c.log.Info("Creating a namespace", "namespace", namespace.Name, "object", KeyOf(info).String())

	// Objects are created in parallel, so another one may have created it.
	_, err = c.helper(namespace).Create("", true, namespace.Object)
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}

	return c.helper(info).Create(info.Namespace, true, info.Object)
}

// createsNamespace reports whether the error of a creation says that the namespace of the object does not exist, and
// the action has to create it because no object of the release does.
func (c *Client) createsNamespace(info *resource.Info, err error) bool {
	return missingNamespace(err) == info.Namespace && info.Namespace != "" &&
		policies.CreatesNamespace(info.Object.(*unstructured.Unstructured)) &&
		!c.target.brings("namespaces", info.Namespace)
}

// namespaceOf returns the namespace of an object, to be created.
func (c *Client) namespaceOf(info *resource.Info) (*resource.Info, error) {
	namespace := &unstructured.Unstructured{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	namespace.SetName(info.Namespace)

	return c.info(namespace)
}

// Restore makes objects what the release defines: it creates those that are missing from live and
// changes the others.
func (c *Client) Restore(list ResourceList, live map[*resource.Info]*unstructured.Unstructured) error {
	c.target.objects = list
	c.target.live = live

	return c.each(list, func(info *resource.Info) error {
		return c.applyOne(info, []runtime.Object{info.Object})
	})
}
