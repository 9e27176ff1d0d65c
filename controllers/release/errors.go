package release

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/apply"
	"github.com/capstan-project/capstan/controllers/problem"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/release/storage"
)

// locked returns the problem of another action on the release that is running. Nothing was done.
func locked(observed state.Observed) error {
	return &problem.Error{
		Condition: v1alpha2.ProviderInstalledCondition, Reason: v1alpha2.ProgressingReason,
		Outcome: problem.Waiting, Until: observed.Until, Message: observed.Message,
	}
}

// IsOvertaken reports whether nothing was done because the release has changed since it was observed, or another action
// on it is running.
func IsOvertaken(err error) bool {
	return problem.Is(err, v1alpha2.ProgressingReason) || errors.Is(err, storage.ErrChanged)
}

// noRevision returns the problem of a history that does not have a revision, and what it has instead, oldest first.
// Nothing was done.
func noRevision(release types.NamespacedName, revision int, present []int) error {
	numbers := make([]string, 0, len(present))
	for _, number := range present {
		numbers = append(numbers, strconv.Itoa(number))
	}

	return problem.Fail(v1alpha2.InstallFailedReason, "release %s has no revision %d to roll back to; its history has %s",
		release, revision, strings.Join(numbers, ", "))
}

// UninstalledError means that another program has uninstalled a release while an action was changing it. What the
// action has created since is deleted again.
type UninstalledError struct{ Release types.NamespacedName }

func (e *UninstalledError) Error() string {
	return fmt.Sprintf("another program uninstalled release %s while it was being changed", e.Release)
}

// Unconfirmed returns the problem of a revision that is not known to be the resource's, and is not acted on. Newest is
// a later revision that the resource has installed, and whose record is gone; 0 for none.
func Unconfirmed(release types.NamespacedName, revision, newest int) error {
	what := "is not known to be this resource's"
	if newest != 0 {
		what = fmt.Sprintf("is older than revision %d, which this resource has installed and whose record is missing", newest)
	}

	return problem.Fail(v1alpha2.InstallFailedReason, "revision %d of Helm release %s %s, and is left alone until a new "+
		"revision replaces it; if it should not exist, delete Secret %s", revision, release, what,
		RecordName(release, revision))
}

// failureOf returns the kind of failure of an action that ended with an error.
func failureOf(err error) v1alpha2.RevisionFailure {
	switch {
	case errors.As(err, new(*apply.UnavailableError)):
		return v1alpha2.FailureUnavailable
	case errors.As(err, new(*storage.Error)):
		return v1alpha2.FailureInterrupted
	}

	return v1alpha2.FailureRejected
}
