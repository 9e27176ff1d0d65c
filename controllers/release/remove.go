package release

import (
	"errors"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"
)

// remove deletes objects that the release no longer has, all at the same time: if one guards
// another, as a webhook without its server may, the next attempt finds the guard gone. What the API
// server has accepted to delete is done with, even if finalizers still hold it.
func (c *client) remove(list kube.ResourceList) error {
	err := c.each(list, c.removeOne)
	if rejected := (*RejectedError)(nil); errors.As(err, &rejected) {
		return &RemoveError{rejected.Objects}
	}

	if unavailable := (*UnavailableError)(nil); errors.As(err, &unavailable) {
		return &RemoveError{unavailable.Objects}
	}

	return err
}

// removeOne deletes an object if it carries the release's mark and none that says to keep it.
func (c *client) removeOne(info *resource.Info) error {
	if protected(info) {
		c.note(&c.report.Left, info)
		return nil
	}

	object, err := c.helper(info).Get(info.Namespace, info.Name)
	if isGone(err) {
		return nil
	}

	if err != nil {
		return err
	}

	live := object.(*unstructured.Unstructured)
	if c.owner(live) != c.release() || strings.EqualFold(live.GetAnnotations()[kube.ResourcePolicyAnno], kube.KeepPolicy) {
		c.log.Info("Leaving an object that is not, or no longer, the release's to delete", "object", objectOf(info).String())
		c.note(&c.report.Left, info)

		return nil
	}

	if err := c.delete(info, live); err != nil {
		return err
	}

	c.note(&c.report.Pruned, info)

	return nil
}

// delete deletes an object, that very one if live is given. One that is gone is fine.
func (c *client) delete(info *resource.Info, live *unstructured.Unstructured) error {
	propagation := metav1.DeletePropagationBackground
	options := &metav1.DeleteOptions{PropagationPolicy: &propagation}

	if live != nil {
		uid := live.GetUID()
		options.Preconditions = &metav1.Preconditions{UID: &uid}
	}

	_, err := c.helper(info).DeleteWithOptions(info.Namespace, info.Name, options)
	if isGone(err) {
		return nil
	}

	return err
}

// protected reports whether an object is of a kind that is never deleted, because users' objects would
// go with it.
func protected(info *resource.Info) bool {
	kind := info.Mapping.GroupVersionKind.Kind
	return kind == "CustomResourceDefinition" || kind == "Namespace"
}

func isGone(err error) bool { return apierrors.IsNotFound(err) }

// dropped are the objects in the lists that target does not have, each once.
func dropped(lists []kube.ResourceList, target kube.ResourceList) kube.ResourceList {
	var all kube.ResourceList
	for _, info := range slices.Concat(lists...) {
		if !target.Contains(info) && !all.Contains(info) {
			all.Append(info)
		}
	}

	return all
}
