package offers

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/Masterminds/semver/v3"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/ranges"
	"github.com/capstan-project/capstan/controllers/release/state"
)

const (
	// lookInterval is how often the source is asked for new versions.
	lookInterval = time.Hour + time.Second
	// answerInterval is how often an upgrade looks whether the source has answered.
	answerInterval = 5 * time.Second
	// PreventedInterval is how often an upgrade is tried again while a check prevents it, and nothing has changed that is
	// watched.
	PreventedInterval = 10 * time.Minute
)

// Upgrading is what an automatic upgrade depends on.
type Upgrading struct {
	// Allowed is set if spec.upgradePolicy allows automatic upgrades.
	Allowed bool
	// Range is spec.version, and Mode is Patch or Minor.
	Range string
	Mode  v1alpha2.UpgradeMode
	// Opening is when upgrades may start. Windowed is set if spec.upgradePolicy.window says that.
	Opening  Opening
	Windowed bool

	History state.History
	// Contract of the newest revision.
	Contract string
	// Asked is what the resource asks for.
	Asked v1alpha2.RevisionRequest
	// Obstacle is why nothing must be upgraded now, as a clause; empty for nothing.
	Obstacle string

	// Offered is what the source offers, and Looking is set while it is asked.
	Offered []v1alpha2.AvailableUpgrade
	Looking bool
	// GivenUp is a version whose upgrade has failed before the history that is known; empty for none.
	GivenUp string
	// Prevented is an upgrade that a check prevents; zero for none.
	Prevented Prevented

	Now time.Time
}

// Prevented is an upgrade that a check prevents.
type Prevented struct {
	// Version to upgrade to, and why that is prevented.
	Version, Message string
	// Until is when to try it again, if nothing has changed before.
	Until time.Time
}

// Opening is a time for which a window is open. Windows that touch or overlap are one.
type Opening struct{ From, Until time.Time }

// Includes reports whether a time is in the opening.
func (o Opening) Includes(t time.Time) bool { return !t.Before(o.From) && t.Before(o.Until) }

// Upgrade returns the version that a resource asks for, and when to decide again; zero if events tell.
func Upgrade(u Upgrading) (selected Selection, until time.Time) {
	if !u.Allowed {
		return Selection{}, time.Time{}
	}

	past, best := examine(u.History, u.Asked), u.best()
	selected, until = past.selection(), u.nextLook()
	from := u.Opening.From

	switch {
	case u.Prevented != Prevented{}:
		selected.Pending = &v1alpha2.PendingUpgrade{
			Version: u.Prevented.Version, Message: bounded(u.Prevented.Message), Blocked: true,
		}

		return selected, earlier(until, u.Prevented.Until)
	case best == "":
		return selected, until
	case u.Obstacle != "":
		selected.Pending = &v1alpha2.PendingUpgrade{Version: best, Message: "waits because " + u.Obstacle}
		return selected, until
	case !u.Opening.Includes(u.Now):
		selected.Pending = &v1alpha2.PendingUpgrade{
			Version: best, Message: "waits for the window, which opens at " + format(from), NotBefore: &metav1.Time{Time: from},
		}

		return selected, until
	case u.Looking:
		selected.Pending = &v1alpha2.PendingUpgrade{Version: best, Message: "waits until the source has answered"}
		return selected, earlier(until, u.Now.Add(answerInterval))
	}

	starts := Selection{Version: best, Automatic: v1alpha2.LabelValue(best), From: past.version}
	if u.Windowed {
		starts.Until = u.Opening.Until
	}

	return starts, until
}

// best returns the version to upgrade to; empty for none.
func (u Upgrading) best() string {
	past := examine(u.History, u.Asked)
	if !past.settled {
		return ""
	}

	return u.newest(past.version, append(past.givenUp, u.GivenUp))
}

// newest returns the newest available version that may follow an installed one, and is newer than all that were given
// up; empty if there is none.
func (u Upgrading) newest(than string, givenUp []string) string {
	installed, err := semver.NewVersion(than)
	if err != nil {
		return ""
	}

	matches, err := ranges.Parse(u.Range)
	if err != nil {
		return ""
	}

	floor := installed

	for _, name := range givenUp {
		if v, err := semver.NewVersion(name); err == nil && v.GreaterThan(floor) {
			floor = v
		}
	}

	var (
		best     string
		bestSeen = floor
	)

	for _, offer := range u.Offered {
		v, err := semver.NewVersion(offer.Version)

		switch {
		case err != nil, v.Prerelease() != "", v.Metadata() != "":
		case offer.Contract != u.Contract, !matches(v), !v.GreaterThan(bestSeen):
		case v.Major() != installed.Major(), u.Mode != v1alpha2.UpgradeMinor && v.Minor() != installed.Minor():
		default:
			best, bestSeen = offer.Version, v
		}
	}

	return best
}

// nextLook returns when to look at the source again: when the window opens, or after a while.
func (u Upgrading) nextLook() time.Time {
	next := u.Now.Add(lookInterval)
	if from := u.Opening.From; from.After(u.Now) {
		return earlier(from, next)
	}

	return next
}

// earlier returns the earlier one of two times.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}

	return a
}
