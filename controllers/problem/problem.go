// Package problem says why a provider is not what its resource asks for.
package problem

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Outcome is what becomes of what a resource asks for while there is a problem.
type Outcome int

const (
	// Stalled means that a user must change something.
	Stalled Outcome = iota
	// Waiting means that something else has to happen, which wakes the resource, or is looked for at Error.Until.
	Waiting
	// Retrying means that the same may succeed when it is tried again.
	Retrying
)

// Error is a problem, as conditions show it. It is made where the problem is known, so that a reconcile need not tell
// errors apart to report them.
type Error struct {
	// Condition is False besides Ready; empty for none.
	Condition string
	// Reason is that of the conditions.
	Reason  string
	Outcome Outcome
	// Until is when to look again, if that is known.
	Until time.Time
	// Message names the object, the reason and the fix.
	Message string
	// Alone is set if Message says all: what errors that wrap this one add to it is not shown.
	Alone bool
	// Cause is what Message describes, or part of it; it may be nil. Its text may quote values and must not be shown.
	Cause error
}

func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Refuse returns the problem of a check that what the resource asks for does not pass until a user changes something.
func Refuse(reason, format string, args ...any) *Error {
	return &Error{
		Condition: v1alpha2.PreflightCheckCondition, Reason: reason, Message: fmt.Sprintf(format, args...),
	}
}

// Await returns the problem of a check that passes once something else has happened, which is watched.
func Await(reason, format string, args ...any) *Error {
	return &Error{
		Condition: v1alpha2.PreflightCheckCondition, Reason: reason, Outcome: Waiting,
		Message: fmt.Sprintf(format, args...),
	}
}

// Fail returns a problem that lasts until a user changes something.
func Fail(reason, format string, args ...any) *Error {
	return &Error{
		Condition: v1alpha2.ProviderInstalledCondition, Reason: reason, Message: fmt.Sprintf(format, args...),
	}
}

// Of returns the problem that an error is, or wraps; nil if there is none. If there are several, it returns the
// innermost, which causes the others.
func Of(err error) *Error {
	var found, next *Error

	for errors.As(err, &next) {
		found, err = next, next.Cause
	}

	return found
}

// Is reports whether an error is, or wraps, a problem with one of the reasons.
func Is(err error, reasons ...string) bool {
	found := Of(err)
	return found != nil && slices.Contains(reasons, found.Reason)
}
