package provider

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/asks"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/object"
)

// Bounds of the time between two attempts to advance. What makes the next one succeed, such as a webhook
// that starts to answer, is not always seen by a watch.
const (
	minAdvance = time.Second
	maxAdvance = 30 * time.Second
)

// findWaiting finds the objects of a staged revision that wait for others, or were never applied because it has failed.
func (r *run) findWaiting(ctx context.Context) error {
	if !r.installed.Newest.Staged() {
		return nil
	}

	own, err := r.ownKinds(ctx)
	if err != nil {
		return err
	}

	r.installed.waiting = r.target.Releases.Waiting(r.installed.Record, r.installed.Newest, own)

	return nil
}

// needsPausedManager reports whether the next step with a staged revision needs the manager that the revision has
// paused: to admit objects of its own kinds, or to process the finalizers of those that are deleted. A resource that
// asks for a pause later may wait for something else to change.
func (i *installed) needsPausedManager() bool {
	return i.Newest.Paused && (len(i.waiting) == 0 || i.waiting[0].Own)
}

// advance takes the next step with a staged revision once the objects that others wait for are healthy. What is not
// possible yet, because a webhook does not answer or a finalizer is left, is tried again: it is no failure of the
// revision before its deadline.
func (r *run) advance(ctx context.Context) error {
	memory, err := r.knownWithKinds(ctx)
	if err != nil {
		return err
	}

	revision := r.installed.Newest

	result, err := r.target.Releases.Advance(ctx, r.installed.History.Release, memory, revision)
	r.target.Health.MarkVerified(result.Applied())

	if result.Inventory != nil {
		r.provider.GetStatus().Objects = object.Inventory(result.Inventory)
	}

	if problems := advanceProblems(err); len(problems) > 0 {
		r.installed.health.Objects = withHealth(r.installed.health.Objects, problems)
		r.installed.removing = errors.As(err, new(*apply.RemainingError))
		r.wakeAfter(advanceAfter(time.Since(revision.Time.Time)))

		return nil
	}

	if err != nil && !leavesRevision(result, err) && !errors.As(err, new(*apply.ConflictError)) {
		return err
	}

	r.done.failure = err
	r.emit(r.provider, adopted(result.Adopted()))
	r.emit(r.provider, rewritten(result.Results))

	if err == nil {
		newest := &r.installed.Newest
		newest.Wave = result.Wave
		newest.Adopted += len(result.Adopted())
		newest.LastTransitionTime.Time = r.policy.Now

		r.noteMarks()
	}

	r.done.advanced, r.installed.stale = true, true

	return nil
}

// requeueStaged requeues the provider at once if the next step with the revision can be taken already: no watch shows
// when objects without a status become healthy.
func (r *run) requeueStaged() {
	if r.done.advanced && r.installed.isStaged() && r.installed.othersHealthy() {
		r.wakeAfter(0)
	}
}

// advanceAfter returns how long to wait for the next attempt, by the age of the revision.
func advanceAfter(age time.Duration) time.Duration { return min(max(age/4, minAdvance), maxAdvance) }

// waits reports whether an object is one of those that wait.
func waits(waiting []asks.Held, o object.Key) bool {
	return slices.ContainsFunc(waiting, func(h asks.Held) bool { return h.Object == o })
}

// withWaiting returns the health of objects in which those that wait for others are not healthy, whether they
// exist or not: they are not yet what the revision says.
func withWaiting(all []health.ObjectHealth, waiting []asks.Held) []health.ObjectHealth {
	held := make([]health.ObjectHealth, 0, len(waiting))
	for _, o := range waiting {
		held = append(held, health.ObjectHealth{Object: o.Object, Result: health.Result{
			Status: status.InProgressStatus, Message: o.Reason(),
		}})
	}

	return withHealth(all, held)
}

// withHealth returns the health of objects with that of some replaced or added.
func withHealth(all, replaced []health.ObjectHealth) []health.ObjectHealth {
	shown := slices.DeleteFunc(slices.Clone(all), func(h health.ObjectHealth) bool {
		return slices.ContainsFunc(replaced, func(r health.ObjectHealth) bool { return r.Object == h.Object })
	})

	return append(shown, replaced...)
}

// advanceProblems returns the objects for which an attempt to advance has to be repeated; none if the error is
// another one.
func advanceProblems(err error) []health.ObjectHealth {
	var (
		unavailable *apply.UnavailableError
		remove      *apply.RemoveError
		remaining   *apply.RemainingError
	)

	switch {
	case errors.As(err, &unavailable):
		return inProgress("could not be applied yet: ", unavailable.Objects)
	case errors.As(err, &remove):
		return inProgress("could not be removed from the release yet: ", remove.Objects)
	case errors.As(err, &remaining):
		return terminating(remaining.Objects)
	default:
		return nil
	}
}

func inProgress(prefix string, failed []*apply.ObjectError) []health.ObjectHealth {
	problems := make([]health.ObjectHealth, 0, len(failed))
	for _, e := range failed {
		problems = append(problems, health.ObjectHealth{Object: e.Object, Result: health.Result{
			Status: status.InProgressStatus, Message: prefix + e.Reason,
		}})
	}

	return problems
}

func terminating(remaining []apply.Remaining) []health.ObjectHealth {
	problems := make([]health.ObjectHealth, 0, len(remaining))
	for _, o := range remaining {
		problems = append(problems, health.ObjectHealth{Object: o.Object, Result: health.Result{
			Status: status.TerminatingStatus,
			Message: "is no longer part of the release and " + o.Reason() +
				"; other objects that the release no longer has stay until it is gone",
		}})
	}

	return problems
}
