package decide

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/reconcile/report"
	"github.com/capstan-project/capstan/controllers/release/state"
)

const (
	// lookInterval is how often the source is asked for new versions.
	lookInterval = time.Hour + time.Second
	// answerInterval is how often an upgrade looks whether the source has answered, and preventedInterval how often it is
	// tried again while a check prevents it.
	answerInterval    = 5 * time.Second
	preventedInterval = 10 * time.Minute
)

// Upgrading is what an automatic upgrade depends on.
type Upgrading struct {
	// Allowed is set if spec.upgradePolicy allows automatic upgrades, and Invalid is why it cannot be used; zero if it
	// can.
	Allowed bool
	Invalid report.Result
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
	Asked state.Request
	// Obstacle is why nothing must be upgraded now, as a clause; empty for nothing.
	Obstacle string

	// Offered is what the source offers, and Looking is set while it is asked.
	Offered []v1alpha2.AvailableUpgrade
	Looking bool
	// Prevented is an upgrade that a check has prevented in this reconcile.
	Prevented Prevented

	Now time.Time
}

// Prevented is a version that a check prevents, and why; zero for none.
type Prevented struct{ Version, Message string }

// Opening is a time for which a window is open. Windows that touch or overlap are one.
type Opening struct{ From, Until time.Time }

// Includes reports whether a time is in the opening.
func (o Opening) Includes(t time.Time) bool { return !t.Before(o.From) && t.Before(o.Until) }

// upgradeRules are the rules of automatic upgrades. The first one that decides counts.
var upgradeRules = []rule[Upgrading]{
	{"without a policy there are no automatic upgrades", manual},
	{"a policy that cannot be used stops a change", invalid},
	{"a version that a check prevents is not tried again soon", prevented},
	{"a healthy version is followed by a newer one of its range", stay},
	{"a provider that is not as it should be is not upgraded", obstructed},
	{"upgrades start in their window", closed},
	{"the source has answered", looking},
}

// Upgrade returns the step that selects a version, which is Step.Selection.
func Upgrade(u Upgrading) Step {
	step, decides := first(upgradeRules, u)
	if !decides {
		step = Step{Action: End, Selection: u.starts()}
	}

	if u.Allowed {
		step.Until = earlier(step.Until, u.nextLook())
	}

	return step
}

func (u Upgrading) past() past { return examine(u.History, u.Asked) }

// best returns the version to upgrade to; empty for none.
func (u Upgrading) best() string {
	past := u.past()
	if !past.settled {
		return ""
	}

	choice := Choice{
		Range: u.Range, Mode: u.Mode, Installed: past.version, Contract: u.Contract, GivenUp: past.givenUp,
	}

	return choice.Best(u.Offered)
}

// starts returns the selection of an upgrade that starts now.
func (u Upgrading) starts() Selection {
	best := u.best()

	starting := Selection{Version: best, Automatic: v1alpha2.LabelValue(best), From: u.past().version}
	if u.Windowed {
		starting.Until = u.Opening.Until
	}

	return starting
}

// waits returns the step that stays at the installed version, and says what the upgrade waits for.
func (u Upgrading) waits(message string) Step {
	selection := u.past().selection()
	selection.Pending = &v1alpha2.PendingUpgrade{Version: u.best(), Message: message}

	return Step{Action: End, Selection: selection}
}

// nextLook returns when to look at the source again: when the window opens, or after a while.
func (u Upgrading) nextLook() time.Time {
	next := u.Now.Add(lookInterval)
	if from := u.Opening.From; from.After(u.Now) {
		return earlier(from, next)
	}

	return next
}

func manual(u Upgrading) (Step, bool) { return Step{Action: End}, !u.Allowed && !u.Invalid.Ends() }

func invalid(u Upgrading) (Step, bool) { return end(u.Invalid) }

// prevented takes an upgrade back that was about to start.
func prevented(u Upgrading) (Step, bool) {
	stays := u.past().selection()
	stays.Pending = &v1alpha2.PendingUpgrade{
		Version: u.Prevented.Version, Message: bounded(u.Prevented.Message), Blocked: true,
	}

	return Step{Action: End, Selection: stays, Until: u.Now.Add(preventedInterval)}, u.Prevented != Prevented{}
}

func stay(u Upgrading) (Step, bool) {
	return Step{Action: End, Selection: u.past().selection()}, u.best() == ""
}

func obstructed(u Upgrading) (Step, bool) {
	return u.waits("waits because " + u.Obstacle), u.Obstacle != ""
}

func closed(u Upgrading) (Step, bool) {
	from := u.Opening.From
	step := u.waits("waits for the window, which opens at " + format(from))
	step.Selection.Pending.NotBefore = &metav1.Time{Time: from}

	return step, !u.Opening.Includes(u.Now)
}

func looking(u Upgrading) (Step, bool) {
	step := u.waits("waits until the source has answered")
	step.Until = u.Now.Add(answerInterval)

	return step, u.Looking
}

// earlier returns the earlier one of two times, of which the first may be zero.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}

	return a
}
