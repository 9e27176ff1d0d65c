package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/metrics"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/problem"
	"github.com/capstan-project/capstan/controllers/release"
)

// deviation is an object that differs from the release, and whether it was corrected.
type deviation struct {
	apply.Difference
	corrected bool
	// why it was not corrected, unless there is an obstacle.
	why string
}

func (d *deviation) String() string {
	if d.why == "" {
		return d.Difference.String()
	}

	return d.Difference.String() + " (" + d.why + ")"
}

// prune deletes what the revision has left because it could not be deleted for a passing reason, or because the records
// of the revisions that had it are lost.
func (r *run) prune(ctx context.Context) error {
	result, err := r.target.Releases.Prune(ctx, r.installed.History.Release, r.known(), r.installed.Newest)
	r.noteResult(result)

	// The provider runs without what finalizers of others hold, so that keeps nothing from being done.
	if remaining := (*apply.RemainingError)(nil); errors.As(err, &remaining) {
		r.done.undeleted = remaining.Error()
		r.wakeAfter(advanceAfter(time.Since(r.installed.Newest.Time.Time)))

		return nil
	}

	return err
}

// correctDrift corrects the objects that differ from the newest revision, no matter which program
// made that. Only objects that have changed since they last matched it are compared, so it makes no
// request while nothing happens.
func (r *run) correctDrift(ctx context.Context) error {
	defer r.Metrics.TimeStep(r.Type, metrics.StepDrift)()

	policy := driftPolicy(r.provider.GetSpec())

	if err := r.findWaiting(ctx); err != nil {
		return err
	}

	changed, err := r.target.Health.Unverified(ctx, r.owner(), r.installed.expectedObjects())
	if problem.Is(err, v1alpha2.UnreadableObjectsReason) {
		r.installed.unconverted = problem.Of(err)
	}

	if err != nil {
		return err
	}

	differences, compareErr := r.compare(ctx, changed)

	found := make([]deviation, 0, len(differences))
	for _, d := range differences {
		found = append(found, deviation{Difference: d})
	}

	if policy == v1alpha2.DriftCorrect && len(found) > 0 {
		if err := r.correct(ctx, found); err != nil {
			return err
		}
	}

	r.installed.deviations = &found
	r.recordDrift(ctx)

	return compareErr
}

// comparesObjects reports whether objects are compared with the newest revision. Before that is deployed, it is not
// settled what they should be.
func (r *run) comparesObjects() bool {
	return r.installed.isOwn() && r.installed.Newest.Status == v1alpha2.RevisionDeployed &&
		driftPolicy(r.provider.GetSpec()) != v1alpha2.DriftOff
}

// compareObjects looks for drift if that is asked for.
func (r *run) compareObjects(ctx context.Context) error {
	if !r.comparesObjects() {
		return nil
	}

	return r.correctDrift(ctx)
}

// compare compares objects with the release. With an error, it returns those that could be compared.
func (r *run) compare(ctx context.Context, objects []object.Key) ([]apply.Difference, error) {
	if len(objects) == 0 {
		return nil, nil
	}

	history := r.installed.History
	compared, err := r.target.Releases.Compare(ctx, history.Release, r.installed.Record.Select(objects))
	r.target.Health.MarkVerified(compared.InSync)

	return compared.Differences, err
}

// driftPolicy returns what follows drift: for a suspended resource it is only reported.
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

// correct corrects the objects that are due, and wakes the provider when others are.
func (r *run) correct(ctx context.Context, all []deviation) error {
	now := time.Now()

	var due []apply.Difference

	for _, d := range all {
		if d.Obstacle == "" && r.isDue(d.Object, now) {
			due = append(due, d.Difference)
		}
	}

	corrected, failure, err := r.correctObjects(ctx, due)
	if err != nil {
		return err
	}

	for i := range all {
		d := &all[i]
		isObject := func(v object.Snapshot) bool { return v.Object == d.Object }
		d.corrected = slices.ContainsFunc(corrected, isObject)

		if slices.ContainsFunc(due, func(tried apply.Difference) bool { return tried.Object == d.Object }) {
			r.memory.corrections.record(d.Object, now, d.corrected)
		}

		if !d.corrected && d.Obstacle == "" {
			r.explainLeft(d, failure, now)
		}
	}

	return nil
}

// isDue reports whether an object may be corrected now.
func (r *run) isDue(o object.Key, now time.Time) bool {
	return !r.memory.corrections.next(o).After(now) || r.policy.Requested
}

// explainLeft explains why a deviation was not corrected, and wakes the provider for the next attempt.
// failure is nil if none was made.
func (r *run) explainLeft(d *deviation, failure error, now time.Time) {
	next := r.memory.corrections.next(d.Object)
	d.why = whyLeft(d.Difference, failure, next)
	r.wakeAfter(next.Sub(now))
}

// correctObjects corrects objects. failure is why some of them could not be corrected; err is why
// nothing was done, because the release has changed meanwhile.
func (r *run) correctObjects(
	ctx context.Context, due []apply.Difference,
) (corrected []object.Snapshot, failure, err error) {
	if len(due) == 0 {
		return nil, nil, nil
	}

	history, revision := r.installed.History, r.installed.Newest

	result, failure := r.target.Releases.Correct(ctx, history.Release, revision, due)
	if release.IsOvertaken(failure) {
		return nil, nil, failure
	}

	r.target.Health.MarkVerified(result.Applied())
	r.emit(r.provider, rewritten(result.Results))

	return result.Applied(), failure, nil
}

// whyLeft explains why an object still differs: because of an error, or because it was changed back
// or deleted each time before.
func whyLeft(d apply.Difference, failure error, next time.Time) string {
	why := "it is changed back each time it is corrected, by a program that kubectl get --show-managed-fields names"

	switch {
	case failure != nil:
		why = object.Text(failure)
	case d.Missing:
		why = "it is deleted each time it is created, by a program that the audit log of the API server names"
	}

	return fmt.Sprintf("%s; the next attempt is at %s", why, next.UTC().Format(time.TimeOnly+" MST"))
}

// recordDrift counts and announces what was corrected, and remembers what is left.
func (r *run) recordDrift(ctx context.Context) {
	var left []object.Snapshot

	for _, d := range *r.installed.deviations {
		if !d.corrected && !d.Missing {
			left = append(left, d.Snapshot)
		}
	}

	r.target.Health.MarkDrifted(left)
	r.announceCorrections(ctx, *r.installed.deviations)
}

// announceCorrections counts and announces what was corrected.
func (r *run) announceCorrections(ctx context.Context, found []deviation) {
	for _, d := range found {
		if d.corrected {
			r.Metrics.CountDriftDetected(r.provider, 1)
			r.Metrics.CountDriftCorrected(r.provider, 1)
			ctrl.LoggerFrom(ctx).Info("Corrected drift", "found", d.String())
			r.emit(r.provider, corrected(d.Object, d.Missing, d.String()))
		}
	}
}

// leftDeviations describes the objects that still differ.
func leftDeviations(all []deviation) []string {
	var left []string

	for _, d := range all {
		if !d.corrected {
			left = append(left, d.String())
		}
	}

	return left
}

// lostMeanwhile reports whether an object is missing that still existed when drift was looked for.
func (r *run) lostMeanwhile() bool {
	if r.installed.deviations == nil || r.installed.health == nil {
		return false
	}

	seen := func(o object.Key) bool {
		return slices.ContainsFunc(*r.installed.deviations, func(d deviation) bool { return d.Object == o })
	}

	return slices.ContainsFunc(r.installed.health.Missing(), func(o object.Key) bool { return !seen(o) })
}
