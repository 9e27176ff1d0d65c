package cluster

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/controllers/manifest"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/waves"
)

var crdKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// target is what the action applies.
type target struct {
	objects Objects
	all     Objects // of the manifest, whether the action applies them now or not
	live    map[*unstructured.Unstructured]*unstructured.Unstructured
	awaited []*unstructured.Unstructured        // those whose kinds were not served
	later   bool                                // there are objects of kinds that earlier waves define
	same    map[*unstructured.Unstructured]bool // those that a dry run has not changed
}

// brings reports whether the action applies an object, by resource and name. The namespace of the release is created
// before, if the release is in another cluster.
func (c *Client) brings(resource, name string) bool {
	if resource == "namespaces" && name == c.release.Namespace {
		return true
	}

	return slices.ContainsFunc(c.target.objects, func(o *unstructured.Unstructured) bool {
		return o.GetName() == name && c.resourceOf(o).Resource == resource
	})
}

// SetTarget sets the manifest that the action applies, and reads those of its objects that the release may have. It
// fails before anything is recorded or applied if a kind is unknown, or an object must not be adopted or read. Objects
// that are scaled automatically keep their replicas.
//
// The objects are those of a manifest, as manifest.Decode returns them. They belong to the client then, which
// changes them. Those of unknown kinds for which isAwaited returns true are left to CompleteTarget.
func (c *Client) SetTarget(objects []*unstructured.Unstructured, isAwaited func(schema.GroupKind) bool) error {
	list, unknown, err := c.resolve(objects)
	if err != nil {
		return err
	}

	later := definedEarlier(objects, unknown)

	missing := slices.DeleteFunc(slices.Clone(unknown), func(o object.Key) bool {
		_, follows := later[o]
		return follows || isAwaited(o.GroupKind())
	})
	if len(missing) > 0 {
		return &UnknownKindError{Objects: missing}
	}

	if err := c.setTarget(list, list); err != nil {
		return asDryRunError(err)
	}

	c.target.later = len(later) > 0
	for key := range later {
		c.has = append(c.has, key)
	}

	for _, o := range objects {
		key := object.KeyOf(o)
		if _, follows := later[key]; slices.Contains(unknown, key) && !follows {
			c.target.awaited = append(c.target.awaited, o)
		}
	}

	return nil
}

// definedEarlier returns the objects of unknown kinds that CRDs in earlier waves of a manifest define, with their
// places.
func definedEarlier(objects []*unstructured.Unstructured, unknown []object.Key) map[object.Key]waves.Place {
	defined, later := map[schema.GroupKind]waves.Place{}, map[object.Key]waves.Place{}

	for _, o := range objects {
		if o.GroupVersionKind().GroupKind() == crdKind {
			group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
			defined[schema.GroupKind{Group: group, Kind: kind}] = waves.OrderOf(o).Applied(false)
		}
	}

	for _, o := range objects {
		crd, is := defined[o.GroupVersionKind().GroupKind()]
		place := waves.OrderOf(o).Applied(false)

		if key := object.KeyOf(o); is && crd < place && slices.Contains(unknown, key) {
			later[key] = place
		}
	}

	return later
}

// CompleteTarget adds the objects to the target whose kinds were not served when it was set.
func (c *Client) CompleteTarget() error {
	known, has := c.target, c.has
	if len(known.awaited) == 0 {
		return nil
	}

	added, unknown, err := c.resolve(known.awaited)
	if err != nil {
		return err
	}

	if len(unknown) > 0 {
		return &UnknownKindError{Objects: unknown}
	}

	if err := c.setTarget(added, slices.Concat(known.objects, added)); err != nil {
		return err
	}

	c.target.objects = slices.Concat(known.objects, added)
	c.target.later = known.later
	c.has = slices.Concat(has, added.keys())
	maps.Copy(c.target.live, known.live)
	maps.Copy(c.target.same, known.same)

	return nil
}

// SetPartialTarget is like SetTarget, but leaves out the objects whose kinds are unknown: they cannot
// exist, and the others need not wait for them.
func (c *Client) SetPartialTarget(objects []*unstructured.Unstructured) error {
	// What was discovered earlier may include kinds that are no longer served.
	c.connection.Refresh()

	list, unknown, err := c.resolve(objects)
	if err != nil {
		return err
	}

	for _, key := range unknown {
		c.log.Info("Leaving out an object whose kind is not served", "object", key.String())
	}

	return asDryRunError(c.setTarget(list, list))
}

// setTarget sets the target to a list of the manifest's objects, where all are those that it has.
func (c *Client) setTarget(list, all Objects) error {
	c.target = target{
		objects: list, all: all,
		live: map[*unstructured.Unstructured]*unstructured.Unstructured{}, same: map[*unstructured.Unstructured]bool{},
	}
	c.has = all.keys()

	for _, o := range list {
		c.prepare(o)
	}

	return c.readEach(list.filter(func(o *unstructured.Unstructured) bool {
		return slices.Contains(c.known, object.KeyOf(o))
	}))
}

// readEach reads objects of the target.
func (c *Client) readEach(list Objects) error {
	return c.each(list, func(o *unstructured.Unstructured) error {
		_, err := c.read(o)
		return err
	})
}

// read reads an object of the target; nil if it does not exist.
func (c *Client) read(o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live, err := c.getOwn(o)
	if err != nil || live == nil {
		return nil, err
	}

	if err := c.keepReplicas(o, live, c.target.all); err != nil {
		return nil, err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	c.target.live[o] = live

	return live, nil
}

// live returns an object of the target as it was read; nil if it was not, because it does not seem to exist.
func (c *Client) live(o *unstructured.Unstructured) *unstructured.Unstructured {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.target.live[o]
}

// Adoptable returns the target's objects, as they were read, that do not belong to the release yet.
func (c *Client) Adoptable() []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured

	for _, o := range c.target.objects {
		if live := c.live(o); live != nil && !c.owns(live) {
			objects = append(objects, live)
		}
	}

	return objects
}

// parse returns the objects of a manifest whose kinds exist.
func (c *Client) parse(content string) (Objects, error) {
	objects, err := manifest.Decode(content)
	if err != nil {
		return nil, err
	}

	list, _, err := c.resolve(objects)

	return list, err
}

// resolve returns the objects whose kinds exist, with their namespaces, and the keys of the others. It discovers the
// API again before it considers a kind unknown.
func (c *Client) resolve(objects []*unstructured.Unstructured) (Objects, []object.Key, error) {
	known, unknown, err := c.mapKinds(objects)
	if err == nil && len(unknown) > 0 {
		c.connection.Refresh()
		known, unknown, err = c.mapKinds(objects)
	}

	return known, unknown, err
}

func (c *Client) mapKinds(objects []*unstructured.Unstructured) (known Objects, unknown []object.Key, err error) {
	for _, o := range objects {
		mapping, err := c.connection.Mapping(o.GroupVersionKind())

		switch {
		case meta.IsNoMatchError(err):
			unknown = append(unknown, object.KeyOf(o))
			continue
		case err != nil:
			return nil, nil, fmt.Errorf("look up the kind of %s %s: %w", o.GetKind(), o.GetName(), err)
		case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
			o.SetNamespace("")
		case o.GetNamespace() == "":
			o.SetNamespace(c.release.Namespace)
		}

		known = append(known, o)
	}

	return known, unknown, nil
}

// resourceOf returns the resource of an object whose kind exists.
func (c *Client) resourceOf(o *unstructured.Unstructured) schema.GroupResource {
	mapping, err := c.connection.Mapping(o.GroupVersionKind())
	if err != nil {
		return schema.GroupResource{} // the kind has gone since the object was resolved
	}

	return mapping.Resource.GroupResource()
}
