package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/release"
)

// drift sees to it that the objects in the cluster stay as the release's current revision says,
// whoever made that revision. Only those that have changed since they were last as it says are
// looked at, so it makes no request while nothing happens.
func (r *Reconciler) drift(ctx context.Context, provider v1alpha2.Provider, record *release.Record) error {
	defer r.Metrics.TimeStep(r.Type, metrics.StepDrift)()

	policy := driftPolicy(provider.GetSpec())
	if policy == v1alpha2.DriftOff {
		conditions.Delete(provider, v1alpha2.DriftedCondition)
		return nil
	}

	current := provider.GetStatus().Release
	if current == nil || current.Status != string(release.StatusDeployed) {
		return nil // it is not settled what there should be
	}

	changed, err := r.Health.Unverified(ctx, names(record))
	if err != nil {
		return &installError{err}
	}

	var compared release.Comparison
	if len(changed) > 0 {
		compared, err = r.Releases.Compare(ctx, current.Namespace, current.Name, objectsOf(record, changed))
		r.Health.MarkVerified(compared.Alike)
	}

	left := deviations(compared.Differences)
	if policy == v1alpha2.DriftCorrect && len(left) > 0 {
		if err := r.correct(ctx, provider, left); err != nil {
			return &installError{err}
		}
	}

	r.reportDrift(ctx, provider, policy, left)

	if err != nil {
		return &installError{err}
	}

	return nil
}

// driftPolicy is what follows drift: a suspended resource only tells of it.
func driftPolicy(spec *v1alpha2.ProviderSpec) v1alpha2.DriftPolicy {
	switch {
	case spec.Release != nil && spec.Release.Drift != "" && spec.Release.Drift != v1alpha2.DriftCorrect:
		return spec.Release.Drift
	case spec.Suspend:
		return v1alpha2.DriftWarn
	default:
		return v1alpha2.DriftCorrect
	}
}

// deviation is a difference and what became of it.
type deviation struct {
	release.Difference
	corrected bool
	why       string // it was not, unless there is an obstacle
}

func deviations(differences []release.Difference) []*deviation {
	all := make([]*deviation, 0, len(differences))
	for _, d := range differences {
		all = append(all, &deviation{Difference: d})
	}

	return all
}

func (d *deviation) String() string {
	if d.why == "" {
		return d.Difference.String()
	}

	return d.Difference.String() + " (" + d.why + ")"
}

// correct corrects the objects whose time has come, and sees to it that the others' comes.
func (r *Reconciler) correct(ctx context.Context, provider v1alpha2.Provider, all []*deviation) error {
	now := time.Now()

	var due []release.Difference

	for _, d := range all {
		if d.Obstacle == "" && (!r.Corrections.next(d.Object).After(now) || requested(provider)) {
			due = append(due, d.Difference)
		}
	}

	var (
		failed    error
		corrected []release.Version
	)

	if len(due) > 0 {
		current := provider.GetStatus().Release

		result, err := r.Releases.Correct(ctx, current.Namespace, current.Name, int(current.Revision), due)
		if pending := new(release.PendingError); errors.As(err, &pending) || errors.Is(err, release.ErrChanged) {
			return err
		}

		corrected, failed = result.Versions, err
		r.Health.MarkVerified(corrected)
	}

	for _, d := range all {
		is := func(object release.Object) bool { return object == d.Object }

		d.corrected = slices.ContainsFunc(corrected, func(v release.Version) bool { return is(v.Object) })
		if tried := slices.ContainsFunc(due, func(d release.Difference) bool { return is(d.Object) }); tried {
			r.Corrections.note(d.Object, now, d.corrected)
		}

		if next := r.Corrections.next(d.Object); !d.corrected && d.Obstacle == "" {
			d.why = reasonLeft(failed, next)
			r.Wake(v1alpha2.Label(provider), provider.GetNamespace(), next.Sub(now))
		}
	}

	return nil
}

// reasonLeft tells why an object still differs: because of the error, or because it was changed
// back each time before.
func reasonLeft(failed error, next time.Time) string {
	why := "it is changed back each time it is corrected"
	if failed != nil {
		why = failed.Error()
	}

	return fmt.Sprintf("%s; the next try is at %s", why, next.UTC().Format(time.TimeOnly+" MST"))
}

// reportDrift writes the condition and the events: what was corrected, and what was left.
func (r *Reconciler) reportDrift(
	ctx context.Context,
	provider v1alpha2.Provider,
	policy v1alpha2.DriftPolicy,
	all []*deviation,
) {
	var (
		left     []string
		versions []release.Version
	)

	for _, d := range all {
		if d.corrected {
			r.Metrics.CountDriftDetected(provider, 1)
			r.Metrics.CountDriftCorrected(provider, 1)
			r.announceCorrection(ctx, provider, d)

			continue
		}

		left = append(left, d.String())
		if !d.Missing {
			versions = append(versions, d.Version)
		}
	}

	r.Health.MarkDrifted(versions)

	if len(left) == 0 {
		conditions.Delete(provider, v1alpha2.DriftedCondition)
		return
	}

	reason, message := v1alpha2.DriftDetectedReason, enumerate(left)
	if policy == v1alpha2.DriftCorrect {
		reason = v1alpha2.DriftNotCorrectedReason
	}

	if before := conditions.Get(provider, v1alpha2.DriftedCondition); before == nil || before.Message != message {
		r.Metrics.CountDriftDetected(provider, len(left))
		r.Events.Eventf(provider, nil, corev1.EventTypeWarning, reason, "Compare", "%s", message)
	}

	conditions.MarkTrue(provider, v1alpha2.DriftedCondition, reason, "%s", message)
}

// announceCorrection makes an event, one an object: events of the same reason, action and objects
// are counted, and only the first tells its message.
func (r *Reconciler) announceCorrection(ctx context.Context, provider v1alpha2.Provider, d *deviation) {
	ctrl.LoggerFrom(ctx).Info("undid a change from outside", "found", d.String())

	action := "Patch"
	if d.Missing {
		action = "Create"
	}

	apiVersion, kind := d.Object.ToAPIVersionAndKind()
	object := &corev1.ObjectReference{
		APIVersion: apiVersion,
		Kind:       kind,
		Namespace:  d.Object.Namespace,
		Name:       d.Object.Name,
	}
	r.Events.Eventf(
		provider,
		object,
		corev1.EventTypeNormal,
		v1alpha2.DriftCorrectedReason,
		action,
		"Undid a change from outside: %s",
		d,
	)
}

// enumerate names some of many.
func enumerate(parts []string) string { return strings.Join(some(parts), "; ") }

// some are the first of many, and how many more there are.
func some(parts []string) []string {
	const most = 5
	if len(parts) > most {
		return append(slices.Clone(parts[:most]), fmt.Sprintf("and %d more", len(parts)-most))
	}

	return parts
}

// names are the objects of a revision.
func names(record *release.Record) []release.Object {
	all := make([]release.Object, 0, len(record.Objects))
	for _, o := range record.Objects {
		all = append(all, nameOf(o))
	}

	return all
}

func nameOf(o *unstructured.Unstructured) release.Object {
	return release.Object{GroupVersionKind: o.GroupVersionKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
}

// objectsOf are the named ones of a revision's objects.
func objectsOf(record *release.Record, wanted []release.Object) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(record.Objects), func(o *unstructured.Unstructured) bool {
		return !slices.Contains(wanted, nameOf(o))
	})
}
