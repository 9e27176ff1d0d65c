package reconcile

import (
	"errors"
	"slices"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/cluster"
	"github.com/capstan-project/capstan/controllers/release/waves"
)

// Bounds of the time between two attempts to advance. What makes the next one succeed, such as a webhook
// that starts to answer, is not always seen by a watch.
const (
	minAdvance = time.Second
	maxAdvance = 30 * time.Second
	// maxConfirm is longer, because all objects are read.
	maxConfirm = 5 * time.Minute
)

// advanceAfter returns how long to wait for the next attempt, by the age of the revision.
func advanceAfter(age time.Duration) time.Duration { return min(max(age/4, minAdvance), maxAdvance) }

// confirmAfter returns how long to wait before the cluster is compared again with a record that is not confirmed, by
// the time since that was written.
func confirmAfter(age time.Duration) time.Duration { return min(max(age/4, minAdvance), maxConfirm) }

// waits reports whether an object is one of those that wait.
func waits(waiting []waves.Held, o object.Key) bool {
	return slices.ContainsFunc(waiting, func(h waves.Held) bool { return h.Object == o })
}

// withWaiting returns the health of objects in which those that wait for others are not healthy, whether they
// exist or not: they are not yet what the revision says.
func withWaiting(all []health.ObjectHealth, waiting []waves.Held) []health.ObjectHealth {
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
		unavailable *cluster.UnavailableError
		remove      *cluster.RemoveError
		remaining   *cluster.RemainingError
	)

	switch {
	case errors.As(err, &unavailable):
		return inProgress("could not be applied yet: ", unavailable.Objects)
	case errors.As(err, &remove):
		return inProgress("could not be deleted yet: ", remove.Objects)
	case errors.As(err, &remaining):
		return terminating(remaining.Objects)
	default:
		return nil
	}
}

func inProgress(prefix string, failed []*cluster.ObjectError) []health.ObjectHealth {
	problems := make([]health.ObjectHealth, 0, len(failed))
	for _, e := range failed {
		problems = append(problems, health.ObjectHealth{Object: e.Object, Result: health.Result{
			Status: status.InProgressStatus, Message: prefix + e.Reason,
		}})
	}

	return problems
}

func terminating(remaining []cluster.Remaining) []health.ObjectHealth {
	problems := make([]health.ObjectHealth, 0, len(remaining))
	for _, o := range remaining {
		problems = append(problems, health.ObjectHealth{Object: o.Object, Result: health.Result{
			Status: status.TerminatingStatus,
			Message: "is no longer part of the release and " + o.Reason() +
				"; what else the release no longer has stays until it is gone",
		}})
	}

	return problems
}
