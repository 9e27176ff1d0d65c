package decide

import (
	"maps"
	"time"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/reconcile/report"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// ReadOthers reads what automatic upgrades of other providers do: it finds Upgrading.Others and Upgrading.Core.
const ReadOthers Action = "ReadOthers"

const (
	// lookInterval is how often the source is asked for new versions.
	lookInterval = time.Hour + time.Second
	// othersInterval is how often an upgrade looks whether other providers let it start, and preventedInterval how often
	// it is tried again while a check prevents it.
	othersInterval    = 5 * time.Second
	preventedInterval = 10 * time.Minute
)

// Upgrading is what an automatic upgrade depends on.
type Upgrading struct {
	Answers Answers
	// Allowed is set if spec.upgradePolicy allows automatic upgrades, and Invalid is why it cannot be used; zero if it
	// can.
	Allowed bool
	Invalid report.Result
	// Range is spec.version, and Mode is Patch or Minor.
	Range string
	Mode  v1alpha2.UpgradeMode
	// Soak is spec.upgradePolicy.soakTime, and Timeout is spec.release.timeout.
	Soak, Timeout time.Duration
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
	// Others are the last upgrades of other providers of the cluster, and Core is the next one of core. They are not known
	// before ReadOthers.
	Others []OtherUpgrade
	Core   CoreUpgrade
	// Waits is since when the upgrade waits for others, by what it waits for.
	Waits map[string]time.Time
	// Prevented is an upgrade that a check has prevented in this reconcile.
	Prevented Prevented

	// Now is the time of the API server.
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
	{"other providers are looked at", ask(ReadOthers, anyUpgrade)},
	{"upgrades follow each other, that of core first", followOthers},
}

// Upgrade returns the next step of the selection of a version. In the end, Step.Selection is the version.
func Upgrade(u Upgrading) Step {
	step, decides := first(upgradeRules, u)
	if !decides {
		step = Step{Action: End, Selection: u.starts()}
	}

	if step.Action == End && u.Allowed {
		step.Until = earlier(step.Until, u.nextLook())
	}

	return step
}

func anyUpgrade(Upgrading) bool { return true }

func (u Upgrading) answers() Answers { return u.Answers }

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

// starts returns the selection of an upgrade that starts now. Since when it has waited stays known: it may be decided
// again before its revision is announced.
func (u Upgrading) starts() Selection {
	best := u.best()

	starting := Selection{Version: best, Automatic: v1alpha2.LabelValue(best), From: u.past().version, Waits: u.Waits}
	if u.Windowed {
		starting.Until = u.Opening.Until
	}

	return starting
}

// waits returns the step that stays at the installed version until a wait ends.
func (u Upgrading) waits(found wait, since map[string]time.Time) Step {
	selection := u.past().selection()
	selection.Pending, selection.Waits = found.pending(u.best()), since

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
	return u.waits(wait{message: "waits because " + u.Obstacle}, u.Waits), u.Obstacle != ""
}

func closed(u Upgrading) (Step, bool) {
	from := u.Opening.From
	step := u.waits(wait{message: "waits for the window, which opens at " + format(from), until: from}, u.Waits)

	return step, !u.Opening.Includes(u.Now)
}

func looking(u Upgrading) (Step, bool) {
	step := u.waits(wait{message: "waits until the source has answered"}, u.Waits)
	step.Until = u.Now.Add(othersInterval)

	return step, u.Looking
}

// followOthers waits for other providers of the cluster: core comes first, there is one upgrade at a time, and each is
// given time to prove itself.
func followOthers(u Upgrading) (Step, bool) {
	since := maps.Clone(u.Waits)
	if since == nil {
		since = map[string]time.Time{}
	}

	found := u.longestWait(since)
	if found == nil {
		return Step{}, false
	}

	step := u.waits(*found, since)

	step.Until = u.Now.Add(othersInterval)
	if found.until.After(u.Now) {
		step.Until = found.until
	}

	return step, true
}

// earlier returns the earlier one of two times, of which the first may be zero.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}

	return a
}
