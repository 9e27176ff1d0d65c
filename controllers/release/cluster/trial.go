package cluster

import (
	"encoding/json"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/objectdiff"
	"github.com/capstan-project/capstan/controllers/release/waves"
)

// DryRunTarget tries by dry runs what the action would change about the target's objects. The error is a *DryRunError
// if the API server would refuse a change, and an *UnavailableError if that could not be found out for a reason that
// may go away by itself.
//
// Of objects that wait for earlier waves, only what these cannot change is a problem. Objects of own kinds are left out
// if their CRDs change first.
func (c *Client) DryRunTarget(withOwn bool) error {
	checked := c.target.objects.Filter(func(info *resource.Info) bool { return withOwn || c.isOther(info) })
	err := c.dryRunEach(checked)

	if refused := (*RejectedError)(nil); errors.As(err, &refused) {
		err = &DryRunError{Objects: refused.Objects}
	}

	return err
}

// dryRunEach tries objects of the target.
func (c *Client) dryRunEach(checked ResourceList) error {
	if len(checked) == 0 {
		return nil
	}

	first := waves.Split(c.target.objects, c.applied)[0]

	return c.each(checked, func(info *resource.Info) error {
		change := dryRunChange{
			later:   c.applied(info) > c.applied(first[0]),
			defined: c.isDefinedEarlier(info),
			brings:  c.target.brings,
		}

		after, err := c.dryRunOne(info)
		if live := c.target.live[info]; err == nil && live != nil && c.isSame(info, live, after) {
			c.mu.Lock()
			defer c.mu.Unlock()

			c.target.same[info] = true
		}

		return change.problem(err)
	})
}

// isSame reports whether an object does not change if it is applied, and Capstan owns the same fields as before.
func (c *Client) isSame(info *resource.Info, live, after *unstructured.Unstructured) bool {
	before, applied := object.SnapshotOf(KeyOf(info), live), object.SnapshotOf(KeyOf(info), after)

	return before.Same(applied) && appliedFields(live).Equals(appliedFields(after)) &&
		c.takeoverOf(live, info.Object.(*unstructured.Unstructured)) == nil
}

// isDefinedEarlier reports whether an earlier wave of the target has the CRD of an object.
func (c *Client) isDefinedEarlier(info *resource.Info) bool {
	return slices.ContainsFunc(c.target.objects, func(crd *resource.Info) bool {
		return crd.Mapping.GroupVersionKind.GroupKind() == crdKind &&
			crd.Name == info.Mapping.Resource.GroupResource().String() && c.applied(crd) < c.applied(info)
	})
}

// dryRunOne is applyOne as a dry run. It returns what the object would become.
func (c *Client) dryRunOne(info *resource.Info) (*unstructured.Unstructured, error) {
	live := c.target.live[info]
	if live == nil {
		return c.dryRunCreation(info)
	}

	if c.isLeft(info, live) {
		return live, nil
	}

	after, err := c.Try(info, live)
	if c.needsReplacement(info, err) {
		return info.Object.(*unstructured.Unstructured), checkReplacement(info, live, err)
	}

	return after, err
}

// Try returns what would become of an object that exists if it was applied. Fields of other installers are still in it
// when the API server tries that, so it is asked about the result without them, too.
func (c *Client) Try(info *resource.Info, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	taken := c.takeoverOf(live, info.Object.(*unstructured.Unstructured))
	after, err := c.send(c.helper(info).DryRun(true), info, identityOf(live))

	switch {
	case taken == nil || len(taken.removed) == 0:
		return after, err
	case err == nil:
		return c.tryResult(info, live, taken.without(after))
	case !apierrors.IsInvalid(err):
		return nil, err
	}

	// What is left of the other installer may be all that is invalid.
	desired := info.Object.(*unstructured.Unstructured).DeepCopy()
	result := overlay(taken.without(live).Object, desired.Object).(map[string]any)

	return c.tryResult(info, live, &unstructured.Unstructured{Object: result})
}

// tryResult changes an object to another state of it in a dry run.
func (c *Client) tryResult(info *resource.Info, live, result *unstructured.Unstructured) (
	*unstructured.Unstructured, error,
) {
	changes := replacing("", live.Object, result.Object, func(field string) bool {
		return !slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, field)
	})
	metadata, _ := live.Object["metadata"].(map[string]any)
	resulting, _ := result.Object["metadata"].(map[string]any)

	changes = append(changes, replacing("/metadata", metadata, resulting, func(field string) bool {
		return slices.Contains([]string{"labels", "annotations", "ownerReferences"}, field)
	})...)

	patch, err := json.Marshal(changes)
	if err != nil {
		return nil, err
	}

	return asUnstructured(c.helper(info).DryRun(true).Patch(info.Namespace, info.Name, types.JSONPatchType, patch, nil))
}

// replacing returns the operations of a JSON patch that replace some fields of an object at a pointer.
func replacing(pointer string, live, result map[string]any, includes func(string) bool) []map[string]any {
	var operations []map[string]any

	for field := range live {
		if _, stays := result[field]; !stays && includes(field) {
			operations = append(operations, map[string]any{"op": "remove", "path": objectdiff.Child(pointer, field)})
		}
	}

	for field, value := range result {
		if includes(field) {
			operations = append(operations, map[string]any{
				"op": "add", "path": objectdiff.Child(pointer, field), "value": value,
			})
		}
	}

	return operations
}

// overlay returns a JSON value with the fields of another one. Items of lists that have names are merged by them, other
// lists are replaced.
func overlay(below, above any) any {
	switch above := above.(type) {
	case map[string]any:
		merged, _ := below.(map[string]any)
		if merged == nil {
			merged = map[string]any{}
		}

		for field, value := range above {
			merged[field] = overlay(merged[field], value)
		}

		return merged
	case []any:
		merged, _ := below.([]any)

		for _, item := range above {
			i := slices.IndexFunc(merged, func(other any) bool { return isSameItem(other, item) })

			switch {
			case nameOf(item) == nil:
				return above
			case i < 0:
				merged = append(merged, item)
			default:
				merged[i] = overlay(merged[i], item)
			}
		}

		return merged
	}

	return above
}

func isSameItem(a, b any) bool { return nameOf(a) != nil && nameOf(a) == nameOf(b) }

// nameOf returns the name of an item of a list, such as a container; nil if it has none.
func nameOf(item any) any {
	fields, _ := item.(map[string]any)
	return fields["name"]
}

// dryRunCreation is create as a dry run. An object in a namespace that would be created before is not tried.
func (c *Client) dryRunCreation(info *resource.Info) (*unstructured.Unstructured, error) {
	created, err := c.send(c.helper(info).DryRun(true), info, absent)
	if !c.createsNamespace(info, err) {
		return created, err
	}

	namespace, err := c.namespaceOf(info)
	if err != nil {
		return nil, err
	}

	_, err = c.helper(namespace).DryRun(true).Create("", true, namespace.Object)

	return info.Object.(*unstructured.Unstructured), err
}

// Adoption is an object before and after it is applied for the first time.
type Adoption struct {
	// Before is the object in the cluster; nil if it does not exist. After has what the API server adds.
	Before, After *unstructured.Unstructured
}

// PreviewAdoption finds out by dry runs what would become of objects if they were applied without having been
// installed by the release before. Objects whose kinds are not served are left out. The error is a
// *ConflictError if an object belongs to another release, and otherwise one of those of an action.
func (c *Client) PreviewAdoption(objects []*unstructured.Unstructured) ([]Adoption, error) {
	list, _, err := c.Resolve(objects)
	if err != nil {
		return nil, err
	}

	if err := c.setTarget(list, list); err != nil {
		return nil, err
	}

	after := make(map[*resource.Info]*unstructured.Unstructured, len(list))

	err = c.each(list, func(info *resource.Info) error {
		adopted, err := c.dryRunOne(info)

		c.mu.Lock()
		defer c.mu.Unlock()

		after[info] = adopted

		return err
	})
	if err != nil {
		return nil, err
	}

	adoptions := make([]Adoption, 0, len(list))
	for _, info := range list {
		adoptions = append(adoptions, Adoption{Before: c.target.live[info], After: after[info]})
	}

	return adoptions, nil
}
