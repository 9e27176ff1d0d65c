package provider

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// Outcome is how a step or a reconcile ended, and with it what requeues the resource.
type Outcome int

const (
	// Continue is the outcome of a step after which the next one follows.
	Continue Outcome = iota
	// Ready means that the provider is what the resource asks for. It is reconciled again after events, and at
	// Result.At for work in the background.
	Ready
	// Waiting means that the resource is reconciled again after an event or at Result.At.
	Waiting
	// Stalled means that a user must change something. The resource is still requeued, each time
	// later, because not every input is watched.
	Stalled
	// Retrying means that the same may succeed when it is tried again, with back-off.
	Retrying
	// Idle means that nothing is done, although the provider is not ready: it is suspended.
	Idle
	// Deferred means that the reconcile was cut short. It starts again at Result.At, and reports nothing.
	Deferred
)

// Result is how a step or a reconcile ended. The zero Result continues with the next step.
type Result struct {
	Outcome Outcome
	// Condition that is False besides Ready; empty for none.
	Condition string
	// Reason of Ready, and its message.
	Reason string
	message
	// Cause is the message of Condition, if that is not that of Ready: Condition may last longer than what Ready says.
	Cause string
	// At is when to reconcile again, if that is known.
	At time.Time
	// Limited is set if a user must look when this takes longer than spec.release.timeout: Waiting for
	// others, or Retrying.
	Limited bool
}

// Ends reports whether no step follows.
func (r Result) Ends() bool { return r.Outcome != Continue }

// wait returns the result of what waits for an event, or for a time if that is not zero.
func wait(reason, cause string, at time.Time) Result {
	return because(cause).of(Result{Outcome: Waiting, Reason: reason, At: at})
}

// endedError is the error of a step that has a result of its own: it waits, or is done.
type endedError struct{ Result }

func (e *endedError) Error() string { return e.text() }

// endWith returns the error of a step that ends with a result.
func endWith(result Result) error { return &endedError{result} }

// waitFor returns the error of a step that waits for an event, or for a time if that is not zero.
func waitFor(reason, cause string, at time.Time) error { return endWith(wait(reason, cause, at)) }

// first returns the first error.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}

	return nil
}

// Between these bounds a problem that a user must solve is looked at again, each time after as long as
// it has existed.
const (
	MinRetry = state.MinBackoff
	MaxRetry = state.MaxBackoff
)

// removalResult adds to the result of a step of the removal what becomes of the provider.
func removalResult(result Result) Result {
	switch {
	case result.Outcome == Idle:
		return result
	case result.Reason == v1alpha2.DeletionBlockedReason:
		return message{runs: "the removal is blocked", causes: []string{result.text()}}.of(result)
	}

	return message{runs: "being removed", causes: []string{result.text()}}.of(result)
}

// removingResult is the result of a removal whose remaining work is not Capstan's: that of a resource with the
// finalizers that are left.
func removingResult(resource string, finalizers []string) Result {
	cause := resource + " has no finalizers left, so the API server is deleting it"
	if len(finalizers) > 0 {
		cause = fmt.Sprintf("Capstan has finished removing the provider; %s is deleted once the programs that added its "+
			"other finalizers remove them: %s", resource, object.List(finalizers, maxFinalizers))
	}

	return because(cause).of(Result{Outcome: Idle, Reason: v1alpha2.DeletingReason})
}

// maxFinalizers bounds how many finalizers a message names.
const maxFinalizers = 5

// overdue returns the result of a wait that takes longer than it may.
func (r Result) overdue(timeout time.Duration) Result {
	late := fmt.Sprintf("this takes longer than spec.release.timeout (%s)", duration.HumanDuration(timeout))
	if r.headline() == "" {
		return r.also(late)
	}

	r.wanted = clauses(r.wanted, late)

	return r
}

// of returns the result with the message.
func (m message) of(result Result) Result {
	result.message = m

	return result
}

// also adds a note to the message of a result; empty for none.
func (r Result) also(note string) Result {
	if note != "" {
		r.notes = append(slices.Clip(r.notes), note)
	}

	return r
}
