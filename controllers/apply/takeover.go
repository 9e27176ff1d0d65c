package apply

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/objectdiff"
)

// installers are field managers that apply the components of a provider as a whole.
var installers = []string{"clusterctl", helmManager, object.PredecessorFieldManager}

const helmManager = "helm"

// users are field managers of people who apply whole manifests: the components of a provider, or later an addition to
// an object of the release. Those that change single fields, such as kubectl-edit or kubectl-rollout, are not among
// them.
var users = []string{"kubectl", "kubectl-client-side-apply", "kubectl-create", "kubectl-replace"}

// predecessorBinary is the field manager of cluster-api-operator where it sets none. Most managers of providers have
// the same one, so it counts only on objects that cluster-api-operator has applied.
const predecessorBinary = "manager"

// takeover is how an object's managed fields change before it is applied, so that no other installer keeps a field in
// the object: the API server removes a field that is no longer applied only if no other program owns it.
type takeover struct {
	managed []metav1.ManagedFieldsEntry
	// removed are the fields that are not applied, so they go.
	removed []fieldpath.Path
}

// takeoverOf returns how the fields of an object become those of Capstan that other installers own, given what is
// applied; nil if there are none. These stay as they are:
//   - additions of users, once the object belongs to the release
//   - what is not applied of Secrets and ConfigMaps, unless helm has set it in the release: it can be data of users
//   - metadata that is not applied, other than labels and annotations
//   - certificates in caBundle and rules of aggregated ClusterRoles, which other programs fill in
//   - fields in a part that is not applied, and that has fields of other programs
//
// Leftovers, if there are any, become those of Capstan, whether they have owners or not. References to provider
// resources as owners go, even if another program has set them: the garbage collector would delete the object as
// soon as the
// resource is deleted in the foreground, in the wrong order.
func (c *Client) takeoverOf(live, desired *unstructured.Unstructured, leftovers *fieldpath.Set) *takeover {
	entries := entriesOf(live, c.owns(live))
	owned, others := ownersOf(entries)
	taken, items := &fieldpath.Set{}, &fieldpath.Set{}
	ofRelease := &fieldpath.Set{}

	for _, e := range entries {
		if e.Manager == helmManager && c.owns(live) {
			ofRelease = ofRelease.Union(e.fields)
		}

		for path := range e.fields.Leaves().All() {
			if e.installer && (has(desired, path) || !has(live, path)) {
				taken.Insert(path)
			}
		}
	}

	for path := range owned.Leaves().All() {
		absent, shared := absentPart(path, desired.Object, others)
		if absent == nil || shared || !isReclaimable(path, desired, ofRelease.Has(path)) {
			continue
		}

		taken.Insert(path)

		if absent[len(absent)-1].FieldName == nil {
			items.Insert(absent)
		}
	}

	if object.PredecessorOwns(live) {
		items.Insert(fieldpath.MakePathOrDie("metadata", "ownerReferences"))
	}

	if leftovers != nil {
		items = items.Union(leftovers)
		entries = append(entries, managedEntry{fields: leftovers}) // of none
	}

	return newTakeover(entries, taken, items, live, desired)
}

// has reports whether an object has a field.
func has(o *unstructured.Unstructured, path fieldpath.Path) bool {
	absent, _ := absentPart(path, o.Object, &fieldpath.Set{})
	return absent == nil
}

// managedEntry is an entry of an object's managed fields.
type managedEntry struct {
	metav1.ManagedFieldsEntry

	fields *fieldpath.Set
	ours   bool
	// installer is true if what is applied becomes Capstan's alone, and adds if what is not applied stays.
	installer, adds bool
}

// entriesOf returns the entries of an object's managed fields, where owned reports whether it belongs to the release.
func entriesOf(live *unstructured.Unstructured, owned bool) []managedEntry {
	all := live.GetManagedFields()
	ofPredecessor := slices.ContainsFunc(all, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == object.PredecessorFieldManager
	})

	entries := make([]managedEntry, 0, len(all))

	for _, entry := range all {
		e := managedEntry{ManagedFieldsEntry: entry, fields: &fieldpath.Set{}}
		if entry.FieldsV1 == nil || e.fields.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
			e.fields = &fieldpath.Set{}
		}

		isUser := slices.Contains(users, entry.Manager)
		e.ours = entry.Manager == v1alpha2.FieldOwner && entry.Operation == metav1.ManagedFieldsOperationApply
		e.adds = isUser && owned
		e.installer = !e.ours && entry.Subresource == "" && (isUser || entry.Manager == v1alpha2.FieldOwner ||
			slices.Contains(installers, entry.Manager) || ofPredecessor && entry.Manager == predecessorBinary)

		entries = append(entries, e)
	}

	return entries
}

// appliedFields returns the fields that Capstan has applied.
func appliedFields(o *unstructured.Unstructured) *fieldpath.Set {
	for _, e := range entriesOf(o, true) {
		if e.ours {
			return e.fields
		}
	}

	return &fieldpath.Set{}
}

// ownersOf returns the fields that belong to other installers, and those that belong to other programs and users.
func ownersOf(entries []managedEntry) (owned, others *fieldpath.Set) {
	owned, others = &fieldpath.Set{}, &fieldpath.Set{}

	for _, e := range entries {
		switch {
		case e.installer && !e.adds:
			owned = owned.Union(e.fields)
		case !e.ours:
			others = others.Union(e.fields)
		}
	}

	return owned, others
}

// isReclaimable reports whether a field that is not applied is one that a chart can have, and that no other program
// fills in. ofRelease reports whether it is from another revision of the release.
func isReclaimable(path fieldpath.Path, desired *unstructured.Unstructured, ofRelease bool) bool {
	switch first := fieldName(path[0]); {
	case fieldName(path[len(path)-1]) == v1alpha2.OrphanedByAnnotation:
		return true // no object of a release has it
	case !ofRelease && (desired.GetKind() == "Secret" || desired.GetKind() == "ConfigMap"):
		return false
	case first == "metadata":
		return len(path) == 3 && (fieldName(path[1]) == "labels" || fieldName(path[1]) == "annotations")
	case first == "status", first == "rules" && isAggregated(desired):
		return false
	}

	return fieldName(path[len(path)-1]) != "caBundle"
}

// absentPart returns the outermost part around a field that the target does not have, nil if it has the field, and
// whether to remove it would remove what another program has set: the part itself, or something in it. Items of lists
// are removed with all of their parts.
func absentPart(path fieldpath.Path, target any, others *fieldpath.Set) (part fieldpath.Path, shared bool) {
	for i, element := range path {
		next, found := partAt(target, element)
		if !found {
			shared = others.Members.Has(element) || element.FieldName != nil && !others.WithPrefix(element).Empty()
			return path[:i+1], shared
		}

		target, others = next, others.WithPrefix(element)
	}

	return nil, false
}

// newTakeover moves the taken fields of installers, and everything in the items, to the fields of Capstan.
func newTakeover(
	entries []managedEntry, taken, items *fieldpath.Set, live, desired *unstructured.Unstructured,
) *takeover {
	own := managedEntry{ManagedFieldsEntry: metav1.ManagedFieldsEntry{
		Manager: v1alpha2.FieldOwner, Operation: metav1.ManagedFieldsOperationApply,
		APIVersion: desired.GetAPIVersion(), FieldsType: "FieldsV1",
	}, fields: &fieldpath.Set{}}
	moved := &fieldpath.Set{}
	kept := make([]managedEntry, 0, len(entries)+1)

	for _, e := range entries {
		if e.ours {
			own = e
			continue
		}

		staying := e.stayingFields(taken, items)
		going := e.fields.Difference(staying)
		moved = moved.Union(going)

		if e.fields = staying; !staying.Empty() || going.Empty() {
			kept = append(kept, e)
		}
	}

	if moved.Empty() {
		return nil
	}

	own.fields = own.fields.Union(moved)
	t := &takeover{}

	for _, e := range append(kept, own) {
		encoded, err := e.fields.ToJSON()
		if err != nil {
			return nil // cannot happen to what was read as JSON
		}

		e.FieldsV1 = metav1.NewFieldsV1(string(encoded))
		t.managed = append(t.managed, e.ManagedFieldsEntry)
	}

	for path := range moved.All() {
		if has(live, path) && !has(desired, path) {
			t.removed = append(t.removed, path.Copy())
		}
	}

	return t
}

// stayingFields returns the fields of an entry that are neither in one of the items nor, if it is of an installer,
// taken.
func (e managedEntry) stayingFields(taken, items *fieldpath.Set) *fieldpath.Set {
	leaves := e.fields.Leaves()

	staying := e.fields.RecursiveDifference(items)
	if e.installer {
		staying = staying.Difference(taken)
	}

	// The entry of an object or an item as a whole goes with the last of its parts.
	for {
		bare := staying.Leaves().Difference(leaves)
		if bare.Empty() {
			return staying
		}

		staying = staying.Difference(bare)
	}
}

// takeOver makes the fields of an object those of Capstan that other installers own, and its leftovers. Nothing but its
// managed fields changes.
func (c *Client) takeOver(o, live *unstructured.Unstructured, leftovers *fieldpath.Set) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		t := c.takeoverOf(live, o, leftovers)
		if t == nil {
			return nil
		}

		_, err := c.patch(c.connection.client, o, types.JSONPatchType, []map[string]any{
			{"op": "replace", "path": "/metadata/managedFields", "value": t.managed},
			{"op": "replace", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()},
		})
		if !apierrors.IsConflict(err) {
			return err
		}

		current, readErr := c.get(o)
		if readErr != nil || current == nil || current.GetUID() != live.GetUID() {
			return fmt.Errorf("another program has deleted it: %w", err)
		}

		live = current

		return err
	})
}

// without returns an object as it would be without the fields that a takeover removes.
func (t *takeover) without(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()

	for _, path := range t.removed {
		o.Object, _ = removePart(o.Object, path).(map[string]any)
	}

	return o
}

// reclaimed returns the JSON pointers of the fields that go when an object is applied, because another installer has
// set them. Lists count as one field.
func (c *Client) reclaimed(live, desired *unstructured.Unstructured) []string {
	t := c.takeoverOf(live, desired, nil)
	if t == nil {
		return nil
	}

	var found []string

	for _, path := range t.removed {
		pointer := ""

		for _, element := range path {
			if element.FieldName == nil {
				break
			}

			pointer = objectdiff.Child(pointer, *element.FieldName)
		}

		found = append(found, pointer)
	}

	return found
}
