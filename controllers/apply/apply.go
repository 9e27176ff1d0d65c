package apply

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/capstan-project/capstan/controllers/asks"
	"github.com/capstan-project/capstan/controllers/object"
)

// Apply applies the first wave of the objects, and deletes those that are dropped. If there are more waves, of objects
// to apply or to delete, both are left to Advance. With an error, it returns what became of the objects until then.
func (s *Set) Apply() (Results, error) {
	var results Results

	if ordered := asks.Split(s.objects, s.applied); len(ordered) > 0 {
		var err error
		if results, err = s.applyWave(ordered[0]); err != nil {
			return results, err
		}
	}

	if s.isStaged() {
		return results, nil
	}

	pruned, err := s.prune()

	return slices.Concat(results, pruned), err
}

// applyWave applies the objects of one wave, kind by kind in Helm's order. It stops after the first kind of which an
// object fails, so that nothing is changed that may depend on it.
func (d *Draft) applyWave(wave Objects) (Results, error) {
	var all Results

	for _, kind := range byKind(wave) {
		results, err := d.change(kind, d.applyOne)
		all = append(all, results...)

		if err != nil {
			return all, err
		}
	}

	return all, nil
}

// applyOne creates or changes an object. Fields that the release has applied before and applies no longer are removed,
// and so are those of other installers; what other programs have added stays.
func (d *Draft) applyOne(o *unstructured.Unstructured) (Result, error) {
	member := d.members[o]
	if !member.changes() {
		return Result{Outcome: Unchanged, Snapshot: member.unchanged}, nil
	}

	live := member.live

	if live == nil {
		created, err := d.create(d.connection.client, o)
		if err == nil {
			return Result{Outcome: Created, Snapshot: object.SnapshotOf(object.KeyOf(o), created)}, nil
		}

		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return Result{}, err
		}

		conflict := err

		// Another program has created it since that was tried, or this one, without getting the answer.
		if live, err = d.read(o); err != nil {
			return Result{}, err
		}

		if live == nil {
			return Result{}, conflict
		}
	}

	if live.GetDeletionTimestamp() != nil {
		return Result{}, errors.New(deletionMessage(live))
	}

	if d.isLeft(o, live) {
		return Result{Outcome: Unchanged, Snapshot: object.SnapshotOf(object.KeyOf(o), live)}, nil
	}

	result, applied, err := d.update(o, live)
	result.Adopted = !d.owns(live)

	if err == nil {
		result.Snapshot = object.SnapshotOf(object.KeyOf(o), applied)
	}

	return result, err
}

// isLeft reports whether an object that exists stays as it is, because it is applied only once.
func (c *Client) isLeft(o, live *unstructured.Unstructured) bool {
	return c.owns(live) && asks.IsAppliedOnce(o)
}

// update changes an object that exists. One that the API server refuses is applied without its leftovers, or replaced
// if an immutable field changes.
func (d *Draft) update(o, live *unstructured.Unstructured) (Result, *unstructured.Unstructured, error) {
	updated := Result{Outcome: Updated}

	applied, err := d.take(o, live, nil)
	if !isInvalid(err) {
		return updated, applied, err
	}

	current, readErr := d.get(o)
	if readErr != nil || current == nil || current.GetUID() != live.GetUID() {
		return updated, nil, cmp.Or(readErr, err)
	}

	settled, err := d.settle(o, current, err)
	if immutable := new(immutableError); errors.As(err, &immutable) {
		applied, err = d.replace(o, current, immutable.refusal)
		return Result{Outcome: Replaced, Reason: object.Reason(o.GetKind(), immutable.refusal)}, applied, err
	}

	if err != nil {
		return updated, nil, err
	}

	if applied, err = d.take(o, current, settled.leftovers); err == nil {
		updated.Removed = settled.fields
	}

	return updated, applied, err
}

// take applies an object that exists, once what is another installer's and its leftovers are taken over.
func (c *Client) take(
	o, live *unstructured.Unstructured, leftovers *fieldpath.Set,
) (*unstructured.Unstructured, error) {
	if err := c.takeOver(o, live, leftovers); err != nil {
		return nil, err
	}

	applied, err := c.send(c.connection.client, o, live)
	if object.IsTooLarge(err) {
		return c.overwrite(o, live)
	}

	return applied, err
}

// overwrite updates an object that is too large for etcd together with its managed fields, such as a configuration of
// hundreds of webhooks with a certificate each. Unlike an apply, an update is stored without them then.
func (c *Client) overwrite(o, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	applied, err := c.send(c.connection.trial, o, live)
	if err != nil {
		return nil, err
	}

	return applied, c.connection.client.Update(c.ctx, applied)
}

// send applies an object by server-side apply, or tries that. live is what was read of it; nil if it did not exist. It
// is a conflict if the object exists now or was deleted meanwhile, and a refusal if it was recreated.
func (c *Client) send(to client.Client, o, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	applied := o.DeepCopy()

	if live == nil {
		applied.SetResourceVersion("1") // no object has it
	} else {
		applied.SetUID(live.GetUID())
	}

	return applied, to.Apply(c.ctx, client.ApplyConfigurationFromUnstructured(applied), client.ForceOwnership)
}

// patch changes an object, or tries that.
func (c *Client) patch(
	to client.Client, o *unstructured.Unstructured, format types.PatchType, content any,
) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}

	patched := reference(o)

	return patched, to.Patch(c.ctx, patched, client.RawPatch(format, body))
}

// create creates an object, and first its namespace if that does not exist and the policy of the object asks for it. An
// object that exists is not changed: the error is a conflict, or says that it exists. An object in a namespace that
// does not exist cannot be tried.
func (d *Draft) create(to client.Client, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	created, err := d.sendNew(to, o)
	if !d.createsNamespace(o, err) {
		return created, err
	}

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.GetNamespace()}}

	// Objects are created in parallel, so another one may have created it.
	if err := to.Create(d.ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}

	if to == d.connection.trial {
		return o, nil
	}

	d.log.Info("Created a namespace", "namespace", o.GetNamespace(), "object", object.KeyOf(o).String())

	return d.sendNew(to, o)
}

// sendNew applies an object that does not exist. One that is too large for etcd together with its managed fields is
// created, which stores it without them.
func (c *Client) sendNew(to client.Client, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	applied, err := c.send(to, o, nil)
	if !object.IsTooLarge(err) {
		return applied, err
	}

	created := o.DeepCopy()

	return created, to.Create(c.ctx, created)
}

// createsNamespace reports whether the error of a creation says that the namespace of the object does not exist, and
// the action has to create it because no object of the release does.
func (d *Draft) createsNamespace(o *unstructured.Unstructured, err error) bool {
	return missingNamespace(err) == o.GetNamespace() && o.GetNamespace() != "" &&
		asks.CreatesNamespace(o) && !d.brings("namespaces", o.GetNamespace())
}
