package release

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/capstan-project/capstan/controllers/release/cluster"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// LockedError means that another action on the release is running. Nothing was done.
type LockedError struct {
	Message string
	// Until is when the lock times out; zero if the other action is this process's own.
	Until time.Time
}

func (e *LockedError) Error() string { return e.Message }

// NoRevisionError means that the history does not have a revision. Nothing was done.
type NoRevisionError struct {
	Release  string // namespace/name
	Revision int
	Present  []int // oldest first
}

func (e *NoRevisionError) Error() string {
	present := make([]string, 0, len(e.Present))
	for _, number := range e.Present {
		present = append(present, strconv.Itoa(number))
	}

	return fmt.Sprintf("release %s has no revision %d to roll back to; its history has %s",
		e.Release, e.Revision, strings.Join(present, ", "))
}

// RenderError means that chart and values cannot be rendered: a variable is missing, a value does
// not match the schema, a template fails, or a field gets a value of the wrong type. Nothing was done,
// and nothing can be until the chart or the values change. The reason contains no values.
type RenderError struct {
	Chart  string
	Reason string
	cause  error
}

func (e *RenderError) Error() string {
	return fmt.Sprintf("chart %s cannot be rendered: %s; correct the variables, or the version", e.Chart, e.Reason)
}

// Unwrap returns Helm's error, and with it the post-renderer's. Its text may quote values and must
// not be shown.
func (e *RenderError) Unwrap() error { return e.cause }

// explain returns what an action failed with. Helm's error has at best the text of the original
// one.
func (s *session) explain(err error, spec Spec) error {
	switch {
	case s.client.Err() != nil:
		return s.client.Err()
	case s.store.Err() != nil:
		return s.store.Err()
	case err == nil:
		return nil
	}

	if spec.Chart != nil && !s.rendered {
		return &RenderError{
			Chart:  spec.chartName(),
			Reason: redact(schemaErrors(err.Error()), spec.Values),
			cause:  err,
		}
	}

	return fmt.Errorf("release %s: %s", s.release, redact(err.Error(), spec.Values))
}

// failure returns the kind of failure of the action so far.
func (s *session) failure() state.Failure {
	var unavailable *cluster.UnavailableError

	switch {
	case errors.As(s.client.Err(), &unavailable):
		return state.FailureUnavailable
	case s.store.Err() != nil:
		return state.FailureInterrupted
	}

	return state.FailureRejected
}
