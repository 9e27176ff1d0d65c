package release

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/resource"
)

// Difference is how an object in the cluster differs from what its release says. It shows no value.
type Difference struct {
	Object Object
	// Missing says that there is no such object.
	Missing bool
	// Fields that differ, as JSON pointers, sorted.
	Fields []string
	// Obstacle says why the object cannot be corrected: it belongs to another release, or is being
	// deleted. Mostly empty.
	Obstacle string
	// Version is what was compared; zero if the object is missing.
	Version Version

	target *resource.Info
	live   *unstructured.Unstructured
}

// mostNamed is how many fields of an object a person is told.
const mostNamed = 5

// String is for people.
func (d Difference) String() string {
	switch {
	case d.Missing:
		return d.Object.String() + " is missing"
	case d.Obstacle != "":
		return d.Object.String() + ": " + d.Obstacle
	default:
		return d.Object.String() + ": " + strings.Join(
			d.Fields[:min(len(d.Fields), mostNamed)],
			", ",
		) + andMore(len(d.Fields)-mostNamed+1)
	}
}

func (d Difference) exists() bool { return d.Missing || d.Obstacle != "" || len(d.Fields) > 0 }

// Comparison is what Compare found.
type Comparison struct {
	// Differences, by object.
	Differences []Difference
	// Alike are the objects that are as the release says, or excluded from the comparison.
	Alike []Version
}

// Compare looks at objects of the release, as Read gave them, and tells which are not as it says.
// An object differs if an upgrade to the same revision would change it: what others have added is
// no difference, nor is what the API server or its webhooks would make of it anyway, what others
// are there to fill in, or the replicas of what is scaled automatically. An object that carries the
// annotation v1alpha2.DriftAnnotation, in the release or in the cluster, is excluded. Each object
// costs one GET, and one PATCH as a dry run if it seems to differ; nothing is changed.
//
// If there is an error, the comparison holds the objects that could be compared.
func (e *Engine) Compare(
	ctx context.Context,
	namespace, name string,
	objects []*unstructured.Unstructured,
) (Comparison, error) {
	c := newClient(e.cluster, namespace, name, logr.FromContextOrDiscard(ctx))

	wanted := make([]*unstructured.Unstructured, 0, len(objects))
	for _, o := range objects {
		wanted = append(wanted, c.wanted(o))
	}

	list, unknown, err := c.resolve(wanted)
	if err != nil {
		return Comparison{}, err
	}

	if len(unknown) > 0 {
		err = &UnknownKindError{Objects: unknown}
	}

	found := make(map[*resource.Info]Difference, len(list))
	errs := forEach(list, func(info *resource.Info) error {
		difference, err := c.compare(info)
		c.mu.Lock()
		defer c.mu.Unlock()

		found[info] = difference

		return err
	})

	var result Comparison

	for i, info := range list {
		switch difference := found[info]; {
		case errs[i] != nil && err == nil:
			err = &ObjectError{
				objectOf(info),
				"it cannot be compared with the release: " + reasonOf(difference.Object.Kind, errs[i]),
				errs[i],
			}
		case errs[i] != nil:
		case difference.exists():
			result.Differences = append(result.Differences, difference)
		case difference.live != nil:
			result.Alike = append(result.Alike, difference.Version)
		}
	}

	slices.SortFunc(
		result.Differences,
		func(a, b Difference) int { return cmp.Compare(a.Object.String(), b.Object.String()) },
	)

	return result, err
}

// wanted is a copy of an object of the manifest as it is to be in the cluster: with the marks that
// Helm adds.
func (c *client) wanted(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()

	labels, annotations := o.GetLabels(), o.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}

	if annotations == nil {
		annotations = map[string]string{}
	}

	labels[managedByLabel] = managedByHelm
	annotations[releaseNameAnnotation], annotations[releaseNamespaceAnnotation] = c.name, c.namespace

	o.SetLabels(labels)
	o.SetAnnotations(annotations)
	readable(o)

	return o
}

// compare compares one object.
func (c *client) compare(info *resource.Info) (Difference, error) {
	d := Difference{Object: objectOf(info), target: info}

	found, err := c.helper(info).Get(info.Namespace, info.Name)
	if apierrors.IsNotFound(err) {
		d.Missing = !excluded(info.Object.(*unstructured.Unstructured))
		return d, nil
	}

	if err != nil {
		return d, err
	}

	d.live = found.(*unstructured.Unstructured)
	d.Version = VersionOf(d.Object, d.live)

	wanted := info.Object.(*unstructured.Unstructured)
	if excluded(wanted) || excluded(d.live) {
		return d, nil
	}

	if owner := c.owner(d.live); owner != "" && owner != c.release() {
		d.Obstacle = foreignOwner(owner).Error()
		return d, nil
	}

	if d.live.GetDeletionTimestamp() != nil {
		d.Obstacle = heldBy(d.live)
		return d, nil
	}

	leaveFilled(wanted)

	if d.Fields, err = c.differing(info, d.live); err != nil || !slices.Contains(d.Fields, replicasPointer) {
		return d, err
	}

	scaled, err := c.scaled(info)
	if err != nil || !scaled {
		return d, err
	}

	removeField(wanted.Object, replicas)

	d.Fields, err = c.differing(info, d.live)

	return d, err
}

// differing are the fields that an upgrade would change. The API server is asked what would become
// of the change, because a value may be written in many ways, and webhooks may undo it or change
// something else; if it refuses that, the change itself tells.
func (c *client) differing(info *resource.Info, live *unstructured.Unstructured) ([]string, error) {
	patch, kind, err := threeWay(info, info.Object, live)
	if err != nil || patch == nil {
		return nil, err
	}

	fields, err := patchedFields(patch)
	if err != nil {
		return nil, err
	}

	patched, err := c.helper(info).DryRun(true).Patch(info.Namespace, info.Name, kind, patch, nil)
	if refused(err) {
		return fields, nil
	}

	if err != nil {
		return nil, err
	}

	return touching(changedFields(live, patched.(*unstructured.Unstructured)), fields), nil
}

// Correct makes the objects that differ what the release says: it creates what is missing and
// changes the rest, as an upgrade does, but makes no revision. Those with an obstacle are left
// alone. revision is the one that was compared. Result.Versions are the objects that it has
// corrected, also if others could not be.
//
// The error is a *PendingError while somebody is at work on the release, or wraps ErrChanged if
// revision is no longer the newest; nothing was done then. Otherwise it is as from Apply:
// *RejectedError, *UnavailableError, *ConflictError.
func (e *Engine) Correct(
	ctx context.Context,
	namespace, name string,
	revision int,
	differences []Difference,
) (Result, error) {
	done, err := e.begin(namespace, name)
	if err != nil {
		return Result{}, err
	}
	defer done()

	if err := e.atRest(ctx, namespace, name, revision); err != nil {
		return Result{}, err
	}

	c := newClient(e.cluster, namespace, name, logr.FromContextOrDiscard(ctx))
	c.target.live = map[*resource.Info]*unstructured.Unstructured{}

	for _, d := range differences {
		if d.Obstacle != "" {
			continue
		}

		c.target.objects = append(c.target.objects, d.target)
		if !d.Missing {
			c.target.live[d.target] = d.live
		}
	}

	err = c.each(
		c.target.objects,
		func(info *resource.Info) error { return c.applyOne(info, []runtime.Object{info.Object}) },
	)

	return c.report, err
}

// atRest makes sure that a revision is the newest and that nobody else is at work on it.
func (e *Engine) atRest(ctx context.Context, namespace, name string, revision int) error {
	observed, err := e.Observe(ctx, namespace, name)
	if err != nil {
		return err
	}

	observed.Busy = false // that is the correction itself

	state := e.Decide(observed, "")
	switch {
	case state.Condition == Pending:
		return &PendingError{Message: state.Message, Until: state.Until}
	case state.Revision.Number != revision || state.Condition == Abandoned:
		return fmt.Errorf("release %s/%s: %w", namespace, name, ErrChanged)
	}

	return nil
}
