package release

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"helm.sh/helm/v3/pkg/kube"
	"helm.sh/helm/v3/pkg/releaseutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/resource"
)

// parallel is how many requests of one action are under way at the same time.
const parallel = 16

// What Helm marks a release's objects with.
const (
	releaseNameAnnotation      = "meta.helm.sh/release-name"
	releaseNamespaceAnnotation = "meta.helm.sh/release-namespace"
	managedByLabel             = "app.kubernetes.io/managed-by"
	managedByHelm              = "Helm"
)

// apply makes the cluster hold what target says, kind after kind in Helm's order, and then removes
// what only the original objects or those of incomplete revisions have. It stops at the first kind
// of which an object fails: nothing that may need it is touched.
func (c *client) apply(original, target kube.ResourceList) error {
	attempted, err := c.attempted()
	if err != nil {
		return err
	}

	bases := append([]kube.ResourceList{original}, attempted...)

	for _, wave := range waves(target) {
		if err := c.each(
			wave,
			func(info *resource.Info) error { return c.applyOne(info, basesOf(bases, info)) },
		); err != nil {
			return err
		}
	}

	return c.remove(dropped(bases, target))
}

// applyOne creates an object, or changes it. bases are what earlier revisions said of it: what any
// of them set and target does not is removed. An object without a base is adopted: nothing of it is
// removed.
func (c *client) applyOne(info *resource.Info, bases []runtime.Object) error {
	live := c.target.live[info]
	if live == nil {
		created, err := c.helper(info).Create(info.Namespace, true, info.Object)
		if err == nil {
			c.noteVersion(info, created.(*unstructured.Unstructured))
			return nil
		}

		if !apierrors.IsAlreadyExists(err) {
			return err
		}

		if live, err = c.lookUp(info); err != nil {
			return err
		}

		if live == nil {
			return errors.New("somebody else created and deleted it at the same time")
		}
	}

	if live.GetDeletionTimestamp() != nil {
		return errors.New(heldBy(live))
	}

	if len(bases) == 0 {
		bases = []runtime.Object{info.Object}
		if c.owner(live) == "" {
			c.note(&c.report.Adopted, info)
		}
	}

	for _, base := range bases {
		patched, err := c.patch(info, base, live)
		if err != nil {
			return err
		}

		live = patched
	}

	c.noteVersion(info, live)

	return nil
}

func heldBy(deleted *unstructured.Unstructured) string {
	return "it is being deleted, but its finalizers hold it: " + strings.Join(deleted.GetFinalizers(), ", ")
}

// patch returns the object as it is afterwards.
func (c *client) patch(info *resource.Info, base, live runtime.Object) (*unstructured.Unstructured, error) {
	patch, kind, err := threeWay(info, base, live)
	if err != nil || patch == nil {
		return live.(*unstructured.Unstructured), err
	}

	patched, err := c.helper(info).Patch(info.Namespace, info.Name, kind, patch, nil)
	switch {
	case apierrors.IsNotFound(err): // deleted since it was looked at
		patched, err = c.helper(info).Create(info.Namespace, true, info.Object)
	case apierrors.IsInvalid(err) && c.replaceable(info):
		patched, err = c.replace(info, live.(*unstructured.Unstructured))
	}

	if err != nil {
		return nil, err
	}

	return patched.(*unstructured.Unstructured), nil
}

// replaceable reports whether an object whose change the API server refuses as invalid can be deleted
// and made anew. It must be valid as it is: the dry run of its creation then finds nothing to
// object to but that it exists, so the refusal was of the change, of an immutable field. What
// stands for data, for other objects or for things outside the cluster is never replaced.
func (c *client) replaceable(info *resource.Info) bool {
	switch info.Mapping.GroupVersionKind.Kind {
	case "CustomResourceDefinition", "Namespace", "Node", "PersistentVolume", "PersistentVolumeClaim":
		return false
	}

	if !builtIn(info) {
		return false
	}

	_, err := c.helper(info).DryRun(true).Create(info.Namespace, true, info.Object)

	return apierrors.IsAlreadyExists(err)
}

func (c *client) replace(info *resource.Info, live *unstructured.Unstructured) (runtime.Object, error) {
	c.log.Info("Replacing an object: the change is to a field that cannot change", "object", objectOf(info).String())

	if err := c.delete(info, live); err != nil {
		return nil, fmt.Errorf("replace it: %w", err)
	}

	created, err := c.helper(info).Create(info.Namespace, true, info.Object)
	if err != nil {
		return nil, fmt.Errorf("replace it, now deleted: %w", err)
	}

	c.note(&c.report.Replaced, info)

	return created, nil
}

// lookUp gets an object; nil if there is none. One that belongs to another release is an error.
func (c *client) lookUp(info *resource.Info) (*unstructured.Unstructured, error) {
	object, err := c.helper(info).Get(info.Namespace, info.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}

	if err != nil {
		return nil, err
	}

	live := object.(*unstructured.Unstructured)
	if owner := c.owner(live); owner != "" && owner != c.release() {
		return nil, foreignOwner(owner)
	}

	return live, nil
}

// foreignOwner is the release, namespace/name, that has an object.
type foreignOwner string

func (o foreignOwner) Error() string { return "it belongs to release " + string(o) }

func (c *client) release() string { return c.namespace + "/" + c.name }

// owner is the release that an object belongs to, namespace/name; empty if none.
func (c *client) owner(o metav1.Object) string {
	a := o.GetAnnotations()
	if a[releaseNameAnnotation] == "" {
		return ""
	}

	return a[releaseNamespaceAnnotation] + "/" + a[releaseNameAnnotation]
}

func (c *client) note(list *[]Object, info *resource.Info) {
	c.mu.Lock()
	defer c.mu.Unlock()

	*list = append(*list, objectOf(info))
}

func (c *client) noteVersion(info *resource.Info, now *unstructured.Unstructured) {
	version := VersionOf(objectOf(info), now)

	c.mu.Lock()
	defer c.mu.Unlock()

	c.report.Versions = append(c.report.Versions, version)
}

// each does something to all objects at the same time, and sums up what went wrong.
func (c *client) each(list kube.ResourceList, do func(*resource.Info) error) error {
	return c.sumUp(list, forEach(list, do))
}

// forEach does something to all objects at the same time, and returns the error of each.
func forEach(list kube.ResourceList, do func(*resource.Info) error) []error {
	errs := make([]error, len(list))

	var group errgroup.Group
	group.SetLimit(parallel)

	for i, info := range list {
		group.Go(func() error {
			errs[i] = do(info)
			return nil
		})
	}

	_ = group.Wait() // errors are in errs

	return errs
}

// sumUp makes one error of those that objects met: the worst kind, with all objects that met it.
func (c *client) sumUp(list kube.ResourceList, errs []error) error {
	var (
		conflicts             []Conflict
		rejected, unavailable []*ObjectError
	)

	for i, err := range errs {
		if err == nil {
			continue
		}

		object := objectOf(list[i])

		var owner foreignOwner
		switch failed := (&ObjectError{object, reasonOf(object.Kind, err), err}); {
		case errors.As(err, &owner):
			conflicts = append(conflicts, Conflict{object, string(owner)})
		case refused(err):
			rejected = append(rejected, failed)
		default:
			unavailable = append(unavailable, failed)
		}
	}

	switch {
	case len(conflicts) > 0:
		return &ConflictError{c.release(), conflicts}
	case len(rejected) > 0:
		return &RejectedError{rejected}
	case len(unavailable) > 0:
		return &UnavailableError{unavailable}
	}

	return nil
}

// waves splits a list by kind, in Helm's order of installation; kinds that it does not know come
// last, together.
func waves(list kube.ResourceList) []kube.ResourceList {
	rank := func(info *resource.Info) int {
		if i := slices.Index(releaseutil.InstallOrder, info.Mapping.GroupVersionKind.Kind); i >= 0 {
			return i
		}

		return len(releaseutil.InstallOrder)
	}
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b *resource.Info) int { return rank(a) - rank(b) })

	var waves []kube.ResourceList

	for i, info := range sorted {
		if i == 0 || rank(info) != rank(sorted[i-1]) {
			waves = append(waves, nil)
		}

		waves[len(waves)-1] = append(waves[len(waves)-1], info)
	}

	return waves
}

// basesOf are the objects in the lists that stand for the same as info.
func basesOf(lists []kube.ResourceList, info *resource.Info) []runtime.Object {
	var bases []runtime.Object

	for _, list := range lists {
		if base := list.Get(info); base != nil {
			bases = append(bases, base.Object)
		}
	}

	return bases
}
