package cluster

import (
	"encoding/json"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/utils/ptr"

	"github.com/capstan-project/capstan/controllers/release/policies"
	"github.com/capstan-project/capstan/controllers/release/waves"
)

// Apply applies the first wave of the target's objects, and deletes those that only older manifests have. If there are
// more waves, of objects to apply or to delete, both are left to Advance.
func (c *Client) Apply(older []string) error {
	lists, err := c.parseAll(older)
	if err != nil {
		return err
	}

	if ordered := waves.Split(c.target.objects, c.applied); len(ordered) > 0 {
		if err := c.applyWave(ordered[0]); err != nil {
			return err
		}
	}

	dropped := missing(lists, c.target.objects)
	if c.isStaged(c.target.objects, dropped) {
		return nil
	}

	return c.prune(dropped)
}

// applyWave applies the objects of one wave, kind by kind in Helm's order. It stops after the first kind of which an
// object fails, so that nothing is changed that may depend on it.
func (c *Client) applyWave(wave ResourceList) error {
	for _, kind := range byKind(wave) {
		if err := c.each(kind, c.applyOne); err != nil {
			return err
		}
	}

	return nil
}

// applyOne creates or changes an object. Fields that the release has applied before and applies no longer are removed,
// and so are those of other installers; what other programs have added stays.
func (c *Client) applyOne(info *resource.Info) error {
	live := c.target.live[info]

	if live == nil {
		created, err := c.create(info)
		if err == nil {
			c.addApplied(info, created)
			return nil
		}

		if !apierrors.IsConflict(err) {
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

	if c.isLeft(info, live) || c.target.same[info] {
		c.addApplied(info, live)
		return nil
	}

	if !c.owns(live) {
		c.addChange(&c.changes.Adopted, info)
	}

	applied, err := c.update(info, live)
	if err != nil {
		return err
	}

	c.addApplied(info, applied)

	return nil
}

// isLeft reports whether an object that exists stays as it is, because it is applied only once.
func (c *Client) isLeft(info *resource.Info, live *unstructured.Unstructured) bool {
	return c.owns(live) && policies.IsAppliedOnce(info.Object.(*unstructured.Unstructured))
}

// update changes an object that exists.
func (c *Client) update(info *resource.Info, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if err := c.takeOver(info, live); err != nil {
		return nil, err
	}

	applied, err := c.send(c.helper(info), info, identityOf(live))
	if c.needsReplacement(info, err) {
		return c.replace(info, live, err)
	}

	return applied, err
}

// identity are fields of an object's metadata that make the API server refuse to apply it to another object.
type identity map[string]any

// identityOf returns the identity of an object that exists. It is a conflict if another program has deleted the object,
// and a refusal if it has also recreated it.
func identityOf(live *unstructured.Unstructured) identity {
	return identity{"uid": string(live.GetUID())}
}

// absent is the identity of an object that does not exist. It is a conflict if it does: no object has this version.
var absent = identity{"resourceVersion": "1"}

// send applies an object by server-side apply.
func (c *Client) send(helper *resource.Helper, info *resource.Info, expected identity) (
	*unstructured.Unstructured, error,
) {
	desired := info.Object.(*unstructured.Unstructured).DeepCopy()
	for field, value := range expected {
		if err := unstructured.SetNestedField(desired.Object, value, "metadata", field); err != nil {
			return nil, err
		}
	}

	body, err := json.Marshal(desired)
	if err != nil {
		return nil, err
	}

	options := &metav1.PatchOptions{Force: ptr.To(true)}

	return asUnstructured(helper.Patch(info.Namespace, info.Name, types.ApplyPatchType, body, options))
}

// asUnstructured returns the answer to a request. A server in another cluster may answer with anything.
func asUnstructured(answer runtime.Object, err error) (*unstructured.Unstructured, error) {
	if err != nil {
		return nil, err
	}

	o, is := answer.(*unstructured.Unstructured)
	if !is {
		return nil, errors.New("the API server's answer is not an object")
	}

	return o, nil
}

// create creates an object, and first its namespace if that does not exist and the policy of the object asks for it. An
// object that exists is not changed: the error is a conflict.
func (c *Client) create(info *resource.Info) (*unstructured.Unstructured, error) {
	created, err := c.send(c.helper(info), info, absent)
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

	return c.send(c.helper(info), info, absent)
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
	c.target = target{objects: list, live: live}

	return c.each(list, c.applyOne)
}
