package offers

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/utils/ptr"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// past is what the history of a release tells.
type past struct {
	// asked is what the resource asks for, with the automatic upgrade that it has had since, if any.
	asked v1alpha2.RevisionRequest
	// version that results from it; empty if that has yet to be found out.
	version string
	// settled is set if that is installed, and has been healthy.
	settled bool
	// givenUp are versions whose automatic upgrade failed since a user has asked for anything.
	givenUp []string
}

// selection returns the version to stay at.
func (p past) selection() Selection {
	return Selection{Version: p.version, Automatic: p.asked.AutomaticUpgrade}
}

// examine returns what the history tells about what a user asks for.
func examine(history state.History, asked v1alpha2.RevisionRequest) past {
	result := past{asked: asked}

	newest, exists := history.Newest()
	if !exists {
		return result
	}

	var base *state.Revision

	for i, r := range history.Revisions {
		switch {
		case r.Request == v1alpha2.RevisionRequest{}:
		case isGivenUp(r, newest):
			if r.Request.SameUser(asked) {
				result.givenUp = append(result.givenUp, r.Version)
			}
		case base == nil:
			base = &history.Revisions[i]
		}
	}

	if base == nil || !base.Request.SameUser(asked) {
		return result
	}

	result.asked = base.Request

	// Another program's revision that was left in place has no version.
	if _, err := semver.NewVersion(base.Version); err == nil {
		result.version = base.Version
		result.settled = base.Number == newest.Number && newest.Status == v1alpha2.RevisionDeployed && newest.Healthy
	}

	return result
}

// isGivenUp reports whether a revision is an automatic upgrade that failed, and something else was installed
// instead. Before that it is still what should be installed.
func isGivenUp(r, newest state.Revision) bool {
	failed := r.Status == v1alpha2.RevisionFailed && r.Failure != v1alpha2.FailureInterrupted

	return failed && r.Request.AutomaticUpgrade != "" &&
		newest.Number != r.Number && newest.Status == v1alpha2.RevisionDeployed
}

// GivenUp returns the version whose automatic upgrade has failed last since a user has asked for anything; empty for
// none.
func GivenUp(history state.History, asked v1alpha2.RevisionRequest) string {
	if givenUp := examine(history, asked).givenUp; len(givenUp) > 0 {
		return givenUp[0]
	}

	return ""
}

// LastUpgrade returns the newest automatic upgrade in the history; nil if there is none. When a user has asked for
// something else since, only shown, what the status has until now, tells that its revision was one. It may be nil. The
// description is that of the newest revision in Helm's history.
func LastUpgrade(
	shown *v1alpha2.AutomaticUpgradeStatus, history state.History, description string,
) *v1alpha2.AutomaticUpgrade {
	before := ptr.Deref(ptr.Deref(shown, v1alpha2.AutomaticUpgradeStatus{}).Last, v1alpha2.AutomaticUpgrade{})
	newest, _ := history.Newest()

	for _, r := range history.Revisions {
		known := r.Number == before.Revision
		if !r.Ours() || r.RollbackTo != 0 || r.Request.AutomaticUpgrade == "" && !known {
			continue
		}

		last := &v1alpha2.AutomaticUpgrade{
			Version:  r.Version,
			Revision: r.Number,
			Time:     r.Time,
			Result:   upgradeResult(r, newest),
		}

		switch {
		case known && before.Message != "":
			last.Message = before.Message
		case isGivenUp(r, newest) && newest.RollbackTo != 0:
			last.Message = bounded(strings.TrimPrefix(description, fmt.Sprintf("Rollback to %d: ", newest.RollbackTo)))
		}

		return last
	}

	return nil
}

// upgradeResult returns the result of an automatic upgrade.
func upgradeResult(r, newest state.Revision) v1alpha2.UpgradeResult {
	passing := r.Failure == v1alpha2.FailureInterrupted || r.Failure == v1alpha2.FailureUnavailable

	switch {
	case r.Healthy:
		return v1alpha2.UpgradeSucceeded
	case r.Number == newest.Number && (r.Status != v1alpha2.RevisionFailed || passing):
		return v1alpha2.UpgradeProgressing
	}

	return v1alpha2.UpgradeFailed
}
