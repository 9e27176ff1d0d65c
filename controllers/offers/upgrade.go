package offers

import (
	"cmp"
	"fmt"
	"slices"
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

// Upgrading is the input of an automatic upgrade.
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

// Opening is a period in which a window is open. Windows that touch or overlap form one period.
type Opening struct{ From, Until time.Time }

// Includes reports whether a time is in the opening.
func (o Opening) Includes(t time.Time) bool { return !t.Before(o.From) && t.Before(o.Until) }

// Upgrade returns the version that a resource asks for, and when to decide again; zero if events tell.
func Upgrade(u Upgrading) (selected Selection, until time.Time) {
	if !u.Allowed {
		return Selection{}, time.Time{}
	}

	past := examine(u.History, u.Asked)
	best, heldUp := u.next(past)
	selected, until = past.selection(), u.nextLook()
	from := u.Opening.From

	switch {
	case u.Prevented != Prevented{}:
		selected.Pending = &v1alpha2.PendingUpgrade{
			Version: u.Prevented.Version, Message: bounded(u.Prevented.Message), Blocked: true,
		}

		return selected, earlier(until, u.Prevented.Until)
	case best == "" && heldUp != "":
		selected.Pending = &v1alpha2.PendingUpgrade{Version: heldUp, Message: bounded(skipsNone(heldUp)), Blocked: true}
		return selected, until
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

	starts := Selection{Version: best, Automatic: best, From: past.version}
	if u.Windowed {
		starts.Until = u.Opening.Until
	}

	return starts, until
}

// skipsNone explains why no version follows after one that was given up.
func skipsNone(givenUp string) string {
	v := semver.MustParse(givenUp)

	return fmt.Sprintf("it has failed, and no minor version is skipped, so a newer version of v%d.%d comes next; to try "+
		"this one again, change the annotation %s", v.Major(), v.Minor(), v1alpha2.ReconcileRequestAnnotation)
}

// next returns the version to upgrade to; empty if there is none. In mode Minor that is one of the next minor version,
// because a provider may need each of them, or else a patch. heldUp is a version of the next minor version if that was
// given up and none is newer; empty otherwise.
func (u Upgrading) next(past past) (best, heldUp string) {
	installed, err := semver.NewVersion(past.version)
	if err != nil || !past.settled {
		return "", ""
	}

	later := u.later(installed)
	givenUp := slices.Concat(past.givenUp, []string{u.GivenUp})

	if u.Mode == v1alpha2.UpgradeMinor {
		minors := slices.DeleteFunc(slices.Clone(later), func(o offer) bool { return o.Minor() == installed.Minor() })

		if len(minors) > 0 {
			lowest := slices.MinFunc(minors, func(a, b offer) int { return cmp.Compare(a.Minor(), b.Minor()) })

			if best, heldUp = u.newest(later, lowest.Minor(), givenUp); best != "" {
				return best, ""
			}
		}
	}

	best, _ = u.newest(later, installed.Minor(), givenUp)

	return best, heldUp
}

// offer is a version that a source offers.
type offer struct {
	*semver.Version

	contract string
}

// later returns the versions in the range that are newer than the installed one, and have the same major version.
func (u Upgrading) later(installed *semver.Version) []offer {
	matches, err := ranges.Parse(u.Range)
	if err != nil {
		return nil
	}

	var later []offer

	for _, offered := range u.Offered {
		v, err := semver.NewVersion(offered.Version)

		switch {
		case err != nil, v.Prerelease() != "", v.Metadata() != "":
		case !matches(v), !v.GreaterThan(installed), v.Major() != installed.Major():
		default:
			later = append(later, offer{v, offered.Contract})
		}
	}

	return later
}

// newest returns the newest version of a minor version that has the contract of the installed one; empty if there is
// none. If one as new as that was given up, that is returned instead.
func (u Upgrading) newest(later []offer, minor uint64, givenUp []string) (newest, failed string) {
	var best *semver.Version

	for _, o := range later {
		if o.Minor() == minor && o.contract == u.Contract && (best == nil || o.GreaterThan(best)) {
			best = o.Version
		}
	}

	if best == nil {
		return "", ""
	}

	for _, name := range givenUp {
		v, err := semver.NewVersion(name)
		if err == nil && v.Major() == best.Major() && v.Minor() == minor && !best.GreaterThan(v) {
			return "", name
		}
	}

	return best.Original(), ""
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
