package apply

import (
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/capstan-project/capstan/controllers/object"
)

// Leftovers are fields of an object that other programs have set, or that the API server has filled in, and that are
// invalid beside what is applied: one member of a union beside another one, such as a probe's tcpSocket beside its
// httpGet. The API server tells neither which of them is wrong nor who has set it. They go by being taken over, in the
// same write as the object is applied.

const (
	// maxParents is how many parents up from a field that the API server names leftovers are looked for.
	maxParents = 3
	// maxKept limits how many fields are tried one by one, to let those stay that are valid.
	maxKept = 64
)

// settlement is how an object can be applied although the API server has refused that.
type settlement struct {
	leftovers *fieldpath.Set
	// fields are the leftovers, as JSON pointers.
	fields []string
	// after is what becomes of the object.
	after *unstructured.Unstructured
}

// immutableError means that a change was refused because an immutable field would change.
type immutableError struct{ refusal error }

func (e *immutableError) Error() string { return e.refusal.Error() }

// Unwrap returns the API server's error.
func (e *immutableError) Unwrap() error { return e.refusal }

// settle finds out by dry runs how an object can be applied, given why the API server has refused that. The error is an
// *immutableError if the object has to be deleted and recreated for it: it would be created as it is applied, but
// cannot become that, whatever else it has.
func (c *Client) settle(o, live *unstructured.Unstructured, refusal error) (*settlement, error) {
	if !isInvalid(refusal) {
		return nil, refusal
	}

	alone, err := c.tryReplacing(live, o)

	switch {
	case isInvalid(err):
		if apierrors.IsAlreadyExists(c.connection.trial.Create(c.ctx, o.DeepCopy())) {
			return nil, &immutableError{refusal: refusal}
		}

		return nil, refusal
	case object.IsRefusal(err):
		alone = o // a policy may require what is missing in it
	case err != nil:
		return nil, err
	}

	s := &leftoverSearch{client: c, desired: o, live: live, alone: alone}
	if err := s.find(); err != nil {
		return nil, err
	}

	if s.refusal != nil || len(s.found) == 0 && c.takeoverOf(live, o, nil) == nil {
		return nil, &notAppliedError{kind: o.GetKind(), refusal: refusal, why: "fields that other programs have set are " +
			"invalid beside those of the release, and Capstan cannot tell which; remove them, for example with kubectl edit"}
	}

	return s.settlement(), nil
}

// isInvalid reports whether a change was refused because of the fields of the object. A policy that refuses it, or
// another program that has recreated the object, says nothing about them.
func isInvalid(refusal error) bool {
	return apierrors.IsInvalid(refusal) && !strings.Contains(refusal.Error(), "ValidatingAdmissionPolicy") &&
		!slices.ContainsFunc(detailsOf(refusal).Causes, func(cause metav1.StatusCause) bool {
			return cause.Field == "metadata.uid"
		})
}

// leftoverSearch is a search for the leftovers of an object.
type leftoverSearch struct {
	client *Client
	// alone is what the object would be without the fields that are not applied.
	desired, live, alone *unstructured.Unstructured
	// fields are those of the live object, with the keys of items in lists.
	fields *fieldpath.Set

	found []fieldpath.Path
	// merged is what is applied on top of the live object without what was found, after is what becomes of that, and
	// refusal why the API server refuses it.
	merged, after *unstructured.Unstructured
	refusal       error
}

// find looks for leftovers around the fields that the API server names: first the fields themselves, then what is in
// them, then what is beside them, and so on. What then turns out to be valid stays.
func (s *leftoverSearch) find() error {
	if err := s.readFields(); err != nil || s.refusal != nil {
		return err
	}

	if err := s.try(nil); err != nil {
		return err
	}

	for up := -1; up <= maxParents && s.refusal != nil; up++ {
		found := slices.Clone(s.found)
		for _, cause := range detailsOf(s.refusal).Causes {
			found = append(found, s.around(cause.Field, up)...)
		}

		if len(found) == len(s.found) {
			continue
		}

		if err := s.try(found); err != nil {
			return err
		}
	}

	if s.refusal != nil {
		return nil //nolint:nilerr // it is the result
	}

	return s.reduce()
}

// readFields lets the API server say which fields the object has: those that a program owns that applies all of it.
func (s *leftoverSearch) readFields() error {
	content := s.live.DeepCopy()
	content.SetManagedFields(nil)
	content.SetResourceVersion("")
	delete(content.Object, "status")

	applied, err := s.client.send(s.client.connection.trial, content, s.live)
	if object.IsRefusal(err) {
		s.refusal = err
		return nil
	}

	s.fields = appliedFields(applied)

	return err
}

// try finds out what becomes of the object without some of its fields.
func (s *leftoverSearch) try(without []fieldpath.Path) error {
	merged := s.client.merged(s.desired, s.live, s.fields, s.parts(without))

	after, err := s.client.tryReplacing(s.live, merged)
	if err != nil && !object.IsRefusal(err) {
		return err
	}

	s.found, s.merged, s.after, s.refusal = without, merged, after, err

	return nil
}

// reduce lets those fields stay that are valid beside what is applied, as far as that shows for one at a time.
func (s *leftoverSearch) reduce() error {
	all := s.found
	if len(all) < 2 {
		return nil
	}

	for _, path := range all[:min(len(all), maxKept)] {
		accepted := *s
		if err := s.try(slices.DeleteFunc(slices.Clone(s.found), path.Equals)); err != nil {
			return err
		}

		if s.refusal != nil {
			*s = accepted
		}
	}

	return nil
}

// around returns the fields around one that the API server names that are not found yet and can be leftovers: that
// field itself if up is -1, what is in it if up is 0, and otherwise what is in one of its parents: fields, or items if
// the field is in one of a list.
func (s *leftoverSearch) around(named string, up int) []fieldpath.Path {
	path := namedPath(named, s.merged.Object, s.fields)
	if up < 0 {
		return slices.DeleteFunc([]fieldpath.Path{path}, s.isIrrelevant)
	}

	around := s.inside(path)

	for range up {
		isItem := len(path) > 0 && path[len(path)-1].FieldName == nil

		path = path[:max(len(path)-1, 0)]
		around = s.inside(path)

		if isItem { // its list is no parent of its own
			path = path[:len(path)-1]
			around = append(around, s.inside(path)...)
		}
	}

	return slices.DeleteFunc(around, s.isIrrelevant)
}

// inside returns the fields of an object, or the items of a list with keys.
func (s *leftoverSearch) inside(path fieldpath.Path) []fieldpath.Path {
	fields := s.fields
	for _, element := range path {
		fields = fields.WithPrefix(element)
	}

	part, _ := partAtPath(s.live.Object, path)
	members, _ := part.(map[string]any)

	var inside []fieldpath.Path
	for _, name := range slices.Sorted(maps.Keys(members)) {
		inside = append(inside, append(path.Copy(), fieldpath.FieldNameElement(name)))
	}

	for element := range fields.Members.All() {
		if element.FieldName == nil {
			inside = append(inside, append(path.Copy(), element))
		}
	}

	return inside
}

// isIrrelevant reports whether a field cannot be a leftover: it is applied, or valid beside that because the API server
// fills it in again.
func (s *leftoverSearch) isIrrelevant(path fieldpath.Path) bool {
	return len(path) == 0 || slices.Contains(bookkeeping, fieldName(path[0])) || !has(s.live, path) ||
		has(s.desired, path) || has(s.alone, path) || slices.ContainsFunc(s.found, path.Equals)
}

// settlement returns what was found.
func (s *leftoverSearch) settlement() *settlement {
	result := &settlement{leftovers: s.parts(s.found), after: s.after}
	for _, path := range s.found {
		result.fields = append(result.fields, pointerOf(path, s.live.Object))
	}

	return result
}

// parts returns fields with all that they contain.
func (s *leftoverSearch) parts(paths []fieldpath.Path) *fieldpath.Set {
	all := fieldpath.NewSet(paths...)

	for part := range s.fields.All() {
		isIn := func(path fieldpath.Path) bool { return len(part) > len(path) && part[:len(path)].Equals(path) }
		if slices.ContainsFunc(paths, isIn) {
			all.Insert(part.Copy())
		}
	}

	return all
}

// merged returns what becomes of a live object if another one is applied once leftovers are taken over. fields are
// those of the live object.
func (c *Client) merged(
	o, live *unstructured.Unstructured, fields, leftovers *fieldpath.Set,
) *unstructured.Unstructured {
	merged := live.DeepCopy()
	if t := c.takeoverOf(live, o, leftovers); t != nil {
		merged.SetManagedFields(t.managed)
	}

	own, others := &fieldpath.Set{}, &fieldpath.Set{}

	for _, e := range entriesOf(merged, true) {
		if e.ours {
			own = e.fields
		} else {
			others = others.Union(e.fields)
		}
	}

	for path := range own.Leaves().All() {
		absent, shared := absentPart(path, o.Object, others)
		if absent == nil || others.Has(path) {
			continue
		}

		if shared {
			absent = path
		}

		merged.Object, _ = removePart(merged.Object, absent).(map[string]any)
	}

	merged.Object, _ = overlaid(merged.Object, o.DeepCopy().Object, fields).(map[string]any)

	return merged
}
