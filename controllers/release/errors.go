package release

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/cluster"
	"github.com/capstan-project/capstan/controllers/release/storage"
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

// UninstalledError means that another program has uninstalled a release while an action was changing it. What the
// action has created since is deleted again.
type UninstalledError struct{ Release types.NamespacedName }

func (e *UninstalledError) Error() string {
	return fmt.Sprintf("another program uninstalled release %s while it was being changed", e.Release)
}

// UnconfirmedError means that a revision is not known to be the resource's, and is not acted on.
type UnconfirmedError struct {
	Release  types.NamespacedName
	Revision int
	// Newest is a later revision that the resource has installed, and whose record is gone; 0 for none.
	Newest int
}

func (e *UnconfirmedError) Error() string {
	what := "is not known to be this resource's"
	if e.Newest != 0 {
		what = fmt.Sprintf(
			"is older than revision %d, which this resource has installed and whose record is missing", e.Newest)
	}

	return fmt.Sprintf("revision %d of Helm release %s %s, and is left alone until a new revision replaces it; "+
		"if it should not exist, delete Secret %s", e.Revision, e.Release, what, RecordName(e.Release, e.Revision))
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

// failureOf returns the kind of failure of an action that ended with an error.
func failureOf(err error) v1alpha2.RevisionFailure {
	switch {
	case errors.As(err, new(*cluster.UnavailableError)):
		return v1alpha2.FailureUnavailable
	case errors.As(err, new(*storage.Error)):
		return v1alpha2.FailureInterrupted
	}

	return v1alpha2.FailureRejected
}
