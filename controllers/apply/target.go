package apply

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-project/capstan/controllers/asks"
	"github.com/capstan-project/capstan/controllers/manifest"
	"github.com/capstan-project/capstan/controllers/object"
)

var crdKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// Target is what an action makes so.
type Target struct {
	// Objects are those of a manifest, as manifest.Decode returns them. They belong to the action then, which changes
	// them.
	Objects []*unstructured.Unstructured
	// Former are the objects of the revision that is deployed, and Verified those that are known to be as it defines them.
	// Those that the target defines in the same way are neither read nor tried.
	Former   []*unstructured.Unstructured
	Verified []object.Snapshot
	// Awaited reports whether a kind that is not served is going to be when the draft is completed; nil for none.
	Awaited func(schema.GroupKind) bool
	// Partial leaves out the objects whose kinds are not served: they cannot exist, and the others need not wait for
	// them.
	Partial bool
}

// Draft are the objects of a target, as they were read.
type Draft struct {
	*Client

	// objects are those that the action applies, and all those of the manifest, whether it applies them now or not.
	objects, all Objects
	members      map[*unstructured.Unstructured]*member
	// unchanged are those that are known not to change, as they are. Those of own kinds may when their CRDs do.
	unchanged map[*unstructured.Unstructured]object.Snapshot
	// awaited are those whose kinds were not served, and later those of kinds that earlier waves define.
	awaited []*unstructured.Unstructured
	later   []object.Key
}

// member is what is known of an object that an action applies. One goroutine at a time works with it.
type member struct {
	// live is the object as it was read; nil if it was not, because it does not seem to exist, or need not be read.
	live *unstructured.Unstructured
	// unchanged is the object as it is, if applying it is known not to change it; otherwise zero.
	unchanged object.Snapshot
}

// changes reports whether applying the object may change it.
func (m *member) changes() bool { return m.unchanged == object.Snapshot{} }

// Set are the objects of a target, all of whose kinds are served, and those that the release has besides.
type Set struct {
	*Draft

	dropped Objects
	// unread is why some of these could not be read; nil or a *RemoveError.
	unread error
}

// unchanged returns the objects that the revision defines in the same way.
func (t Target) unchanged() Objects {
	former := make(map[object.Key]*unstructured.Unstructured, len(t.Former))
	for _, o := range t.Former {
		former[object.KeyOf(o)] = o
	}

	return Objects(t.Objects).filter(func(o *unstructured.Unstructured) bool {
		before := former[object.KeyOf(o)]
		return before != nil && equality.Semantic.DeepEqual(before.Object, o.Object)
	})
}

// verified returns those of some objects that have a snapshot.
func verified(list Objects, snapshots []object.Snapshot) map[*unstructured.Unstructured]object.Snapshot {
	found := map[*unstructured.Unstructured]object.Snapshot{}

	for _, o := range list {
		isOf := func(s object.Snapshot) bool { return s.Object == object.KeyOf(o) }
		if i := slices.IndexFunc(snapshots, isOf); i >= 0 {
			found[o] = snapshots[i]
		}
	}

	return found
}

// newDraft returns a draft without objects to apply.
func (c *Client) newDraft(all Objects) *Draft {
	return &Draft{Client: c, all: all, members: map[*unstructured.Unstructured]*member{}}
}

// brings reports whether the action applies an object, by resource and name. The namespace of the release is created
// before, if the release is in another cluster.
func (d *Draft) brings(resource, name string) bool {
	if resource == "namespaces" && name == d.release.Namespace {
		return true
	}

	return slices.ContainsFunc(d.objects, func(o *unstructured.Unstructured) bool {
		return o.GetName() == name && d.resourceOf(o).Resource == resource
	})
}

// Read reads those objects of a target that the release may have. It fails before anything is recorded or applied if a
// kind is unknown, or an object must not be adopted or read. Objects that are scaled automatically keep their replicas.
func (c *Client) Read(target Target) (*Draft, error) {
	// What was discovered earlier may include kinds that are no longer served.
	if target.Partial {
		c.connection.Refresh()
	}

	unchanged := target.unchanged() // before namespaces are set

	list, unknown, err := c.resolve(target.Objects)
	if err != nil {
		return nil, err
	}

	draft := c.newDraft(list)
	draft.unchanged = verified(unchanged, target.Verified)

	switch {
	case target.Partial:
		for _, key := range unknown {
			c.log.Info("Leaving out an object whose kind is not served", "object", key.String())
		}
	default:
		if err := draft.await(target, unknown); err != nil {
			return nil, err
		}
	}

	return draft, asDryRunError(draft.include(list))
}

// await notes the objects of unknown kinds that are going to be served.
func (d *Draft) await(target Target, unknown []object.Key) error {
	later := definedEarlier(target.Objects, unknown)
	d.later = slices.Collect(maps.Keys(later))

	var missing []object.Key

	for _, o := range target.Objects {
		key := object.KeyOf(o)
		if _, follows := later[key]; follows || !slices.Contains(unknown, key) {
			continue
		}

		d.awaited = append(d.awaited, o)

		if target.Awaited == nil || !target.Awaited(key.GroupKind()) {
			missing = append(missing, key)
		}
	}

	if len(missing) > 0 {
		return &UnknownKindError{Objects: missing}
	}

	return nil
}

// definedEarlier returns the objects of unknown kinds that CRDs in earlier waves of a manifest define, with their
// places.
func definedEarlier(objects []*unstructured.Unstructured, unknown []object.Key) map[object.Key]asks.Place {
	defined, later := map[schema.GroupKind]asks.Place{}, map[object.Key]asks.Place{}

	for _, o := range objects {
		if o.GroupVersionKind().GroupKind() == crdKind {
			group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
			defined[schema.GroupKind{Group: group, Kind: kind}] = asks.OrderOf(o).Applied(false)
		}
	}

	for _, o := range objects {
		crd, is := defined[o.GroupVersionKind().GroupKind()]
		place := asks.OrderOf(o).Applied(false)

		if key := object.KeyOf(o); is && crd < place && slices.Contains(unknown, key) {
			later[key] = place
		}
	}

	return later
}

// Complete reads the objects whose kinds were not served when the others were read, and those that the release has
// besides.
func (d *Draft) Complete() (*Set, error) {
	if len(d.awaited) > 0 {
		added, unknown, err := d.resolve(d.awaited)
		if err != nil {
			return nil, err
		}

		if len(unknown) > 0 {
			return nil, &UnknownKindError{Objects: unknown}
		}

		d.awaited, d.all = nil, slices.Concat(d.all, added)
		if err := d.include(added); err != nil {
			return nil, err
		}
	}

	return d.withDropped(), nil
}

// withDropped reads the objects that the release has besides the draft, as far as they exist and belong to it: an
// inventory alone deletes nothing.
func (d *Draft) withDropped() *Set {
	set := &Set{Draft: d}
	set.dropped, set.unread = d.existing(d.known, d.has())

	return set
}

// has returns the objects of the manifest.
func (d *Draft) has() []object.Key { return slices.Concat(d.all.keys(), d.later) }

// include adds objects of the manifest to those that the action applies, and reads those that the release may have.
func (d *Draft) include(list Objects) error {
	d.objects = slices.Concat(d.objects, list)

	for _, o := range list {
		d.prepare(o)
		d.members[o] = &member{}

		if snapshot, known := d.unchanged[o]; known && !d.isOwn(o) {
			d.members[o].unchanged = snapshot
		}
	}

	return d.readEach(list.filter(func(o *unstructured.Unstructured) bool {
		return slices.Contains(d.known, object.KeyOf(o)) && d.members[o].changes()
	}))
}

// readEach reads objects that the action applies.
func (d *Draft) readEach(list Objects) error {
	return d.each(list, func(o *unstructured.Unstructured) error {
		_, err := d.read(o)
		return err
	})
}

// read reads an object that the action applies; nil if it does not exist.
func (d *Draft) read(o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live, err := d.getOwn(o)
	if err != nil || live == nil {
		return nil, err
	}

	if err := d.keepReplicas(o, live, d.all); err != nil {
		return nil, err
	}

	d.members[o].live = live

	return live, nil
}

// Adoptable returns the objects, as they were read, that do not belong to the release yet.
func (d *Draft) Adoptable() []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured

	for _, o := range d.objects {
		if live := d.members[o].live; live != nil && !d.owns(live) {
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
