package apply

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/asks"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/objectdiff"
)

// Difference is how an object in the cluster differs from its release. It contains no values.
type Difference struct {
	Object object.Key
	// Missing is true if the object does not exist.
	Missing bool
	// Fields that differ, as JSON pointers, sorted.
	Fields []string
	// Obstacle is why the object cannot be corrected: it belongs to another release, or is being
	// deleted. It is empty if nothing prevents the correction.
	Obstacle string
	// Snapshot is what was compared. It is zero if the object is missing.
	Snapshot object.Snapshot

	desired *unstructured.Unstructured
	live    *unstructured.Unstructured
}

// maxFields is how many fields of an object a message names.
const maxFields = 5

// String describes the difference to the user.
func (d Difference) String() string {
	switch {
	case d.Missing:
		return d.Object.String() + " is missing"
	case d.Obstacle != "":
		return d.Object.String() + ": " + d.Obstacle
	default:
		return d.Object.String() + ": " + object.List(d.Fields, maxFields) + d.advice()
	}
}

// advice tells users of clusterctl what to use instead. `clusterctl upgrade apply` begins with Deployments without
// replicas.
func (d Difference) advice() string {
	if d.live == nil || object.LastManager(d.live) != "clusterctl" {
		return ""
	}

	return ", changed by clusterctl; to upgrade a provider that Capstan manages, use capstan upgrade apply or spec.version"
}

func (d Difference) isEmpty() bool { return !d.Missing && d.Obstacle == "" && len(d.Fields) == 0 }

// Comparison is the result of Compare.
type Comparison struct {
	// Differences, sorted by object.
	Differences []Difference
	// InSync are the objects that are as the release defines them, or excluded from the comparison.
	InSync []object.Snapshot
}

// Compare compares objects of a release with the cluster. An object differs if an upgrade to the
// same revision would change it. These are no differences:
//   - what other programs have added to an object
//   - what the API server, or one of its webhooks, would change anyway
//   - fields that other programs fill in, and the replicas of what is scaled automatically
//   - objects with the annotation v1alpha2.DriftAnnotation, in the release or in the cluster
//   - objects that are applied only once, unless they are missing
//
// Each object costs one GET, and one PATCH as a dry run if it seems to differ. If there is an error, the comparison has
// the objects that could be compared.
func (c *Client) Compare(objects []*unstructured.Unstructured) (Comparison, error) {
	list, unknown, err := c.asApplied(objects)
	if err != nil {
		return Comparison{}, err
	}

	if len(unknown) > 0 {
		err = &UnknownKindError{Objects: unknown}
	}

	differences, errs := forEach(list, c.compareOne)

	var result Comparison

	for i, difference := range differences {
		switch {
		case errs[i] != nil && err == nil:
			err = newCompareError(difference.Object, errs[i])
		case errs[i] != nil:
			continue // the first error counts
		case !difference.isEmpty():
			result.Differences = append(result.Differences, difference)
		case difference.live != nil:
			result.InSync = append(result.InSync, difference.Snapshot)
		}
	}

	slices.SortFunc(result.Differences, func(a, b Difference) int {
		return strings.Compare(a.Object.String(), b.Object.String())
	})

	return result, err
}

// asApplied returns copies of the objects of a release as an upgrade would apply them, and those of unknown kinds.
func (c *Client) asApplied(objects []*unstructured.Unstructured) (Objects, []object.Key, error) {
	desired := make([]*unstructured.Unstructured, 0, len(objects))

	for _, o := range objects {
		o = o.DeepCopy()
		c.prepare(o)
		desired = append(desired, o)
	}

	return c.resolve(desired)
}

func (c *Client) compareOne(o *unstructured.Unstructured) (Difference, error) {
	d := Difference{Object: object.KeyOf(o), desired: o}

	live, err := c.get(o)
	if err != nil {
		return d, err
	}

	if live == nil {
		d.Missing = !isExcluded(o)
		return d, nil
	}

	d.live = live
	d.Snapshot = object.SnapshotOf(d.Object, live)

	if isExcluded(o) || isExcluded(live) || asks.IsAppliedOnce(o) {
		return d, nil
	}

	if d.Obstacle = c.obstacle(live); d.Obstacle != "" {
		return d, nil
	}

	d.Fields, err = c.compareFields(o, live)

	return d, err
}

// compareFields returns the fields that an upgrade would change, apart from those that others set.
func (c *Client) compareFields(o, live *unstructured.Unstructured) ([]string, error) {
	fields, err := c.differingFields(o, live)
	if err != nil || !slices.Contains(fields, replicasPointer) || !mayHaveScaled(o, live) {
		return fields, err
	}

	// Autoscalers are looked for only if the replicas differ, because that costs requests.
	scaled, err := c.IsScaled(object.KeyOf(o))
	if err != nil || !scaled {
		return fields, err
	}

	unstructured.RemoveNestedField(o.Object, replicasPath...)

	return c.differingFields(o, live)
}

// differingFields returns the fields that an upgrade would change. A dry run shows what would become of an object that
// seems to differ, because a value can be written in different ways, and a webhook may undo the change or make another
// one. If the API server refuses the dry run, what seems to differ counts.
func (c *Client) differingFields(o, live *unstructured.Unstructured) ([]string, error) {
	seeming := differing("", o.Object, objectdiff.Project(o, live).Object)
	seeming = append(seeming, c.reclaimed(live, o)...)

	if len(seeming) == 0 {
		return nil, nil
	}

	tried, err := c.try(o, live)
	if object.IsRefusal(err) {
		return seeming, nil
	}

	if err != nil {
		return nil, err
	}

	return overlapping(changedFields(live, tried.after), append(seeming, tried.fields...)), nil
}

// Correct creates the objects that are missing and changes the others, except those with an
// obstacle.
func (c *Client) Correct(differences []Difference) (Results, error) {
	draft := c.newDraft(nil)

	for _, d := range differences {
		if d.Obstacle != "" {
			continue
		}

		draft.objects = append(draft.objects, d.desired)
		draft.members[d.desired] = &member{live: d.live}
	}

	return draft.change(draft.objects, draft.applyOne)
}

// isExcluded reports whether an annotation excludes an object from the comparison.
func isExcluded(o metav1.Object) bool {
	return o.GetAnnotations()[v1alpha2.DriftAnnotation] == v1alpha2.DriftIgnore
}
