package decide

import (
	"fmt"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// rollbackDigest begins the digest of a revision that spec.release.rollbackTo asked for.
const rollbackDigest = "rollback-"

// RollbackDigest identifies the rollback to a revision that spec.release.rollbackTo asks for.
func RollbackDigest(revision int, paused bool) string {
	digest := fmt.Sprintf("%s%d", rollbackDigest, revision)
	if paused {
		digest += "-paused"
	}

	return digest
}

// isAutomaticRollback reports whether Capstan rolled back to an earlier revision without being asked.
func isAutomaticRollback(revision state.Revision) bool {
	return revision.RollbackTo != 0 && !strings.HasPrefix(revision.ContentDigest, rollbackDigest)
}

// AttemptedDigest returns the digest of what Capstan last tried to install. A revision that it rolled back to
// automatically carries the digest of an earlier attempt.
func AttemptedDigest(history state.History) string {
	for _, revision := range history.Revisions {
		if revision.Ours() && !isAutomaticRollback(revision) {
			return revision.ContentDigest
		}
	}

	return ""
}

// recovered reports whether a failed revision has become healthy after all, as far as it was applied: the next attempt
// applies the waves that are left.
func recovered(revision state.Revision, healthy bool) bool {
	unhealthy := revision.Failure == v1alpha2.FailureUnhealthy || revision.Failure == v1alpha2.FailureFinal
	return revision.Ours() && revision.Status == v1alpha2.RevisionFailed && unhealthy && healthy
}

// Wanted is what the change depends on.
type Wanted struct {
	History state.History
	// Healthy is set if all objects of the newest revision that were applied are known to be healthy.
	Healthy bool
	Policy  state.Policy
	// Asked is what the resource asks for.
	Asked v1alpha2.RevisionRequest
	// Digest identifies what would be installed for it, and Inputs are what that is created from. Digest is empty if it
	// is not known.
	Digest string
	Inputs v1alpha2.RevisionInputs
	// Watched has the inputs whose changes take effect at once.
	Watched []state.Difference
	// Rules for the state of the release.
	Rules state.Rules
	// OwnedElsewhere is set if a resource in another cluster owns the release, and this one takes it over.
	OwnedElsewhere bool
	// Incomplete is set if inputs could not be used that are not needed for what is installed.
	Incomplete bool
}

// Release is what follows for the release.
type Release struct {
	// Pin is the revision that stays although another one would be created now, if Pinned.
	Pin    state.Pin
	Pinned bool
	// Digest is the one that the release should have.
	Digest   string
	State    state.Observed
	Decision state.Decision
	// Handled is set if the newest revision fulfills the request, and is not known to do so yet. What changes later
	// although the resource does not is then known not to be a request.
	Handled bool
}

// Keeps reports whether the newest revision stays although another one would be created now.
func (r Release) Keeps() bool { return r.Pinned && r.Decision.Action != state.Apply }

// Assess compares the release with what is asked for, or with the revision that stays although that differs.
func Assess(w Wanted) Release {
	watched := func(input state.Difference) bool { return slices.Contains(w.Watched, input) }
	found := Release{Digest: w.Digest}

	found.Pin, found.Pinned = w.History.Pin(w.Asked, w.Digest, w.Inputs, watched)
	if found.Pinned {
		found.Digest = found.Pin.ContentDigest
	}

	newest, exists := w.History.Newest()
	policy := w.Policy
	policy.Requested = w.asksAgain() || recovered(newest, w.Healthy)

	found.State = state.Determine(w.History, found.Digest, w.Rules)
	found.Decision = state.Next(w.History, found.Digest, found.State, policy)

	// A new revision records the new owner.
	if w.OwnedElsewhere {
		found.Decision.Action = state.Apply
	}

	// A request by annotation is not handled while inputs are missing: it takes effect once they can be used.
	handled := found.Decision.Action == state.None || found.Decision.Action == state.Hold
	missing := w.Incomplete && newest.Request.SameSpec(w.Asked)
	found.Handled = exists && newest.Confirmed() && handled && !missing && newest.Request != w.Asked

	return found
}

// asksAgain reports whether the resource asks for something since the newest revision that records a request. As long
// as there is none, the status tells.
func (w Wanted) asksAgain() bool {
	last, recorded := w.History.LastRequest()
	if !recorded {
		return w.Policy.Requested || w.Policy.SpecChanged && len(w.History.Revisions) > 0
	}

	return last.Request != w.Asked
}
