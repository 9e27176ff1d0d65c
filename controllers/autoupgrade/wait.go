package autoupgrade

import (
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/reconcile/report"
)

// wait is what an upgrade waits for; nil for nothing.
type wait struct {
	message string
	// until is when the wait ends at the earliest; zero if that is not known.
	until time.Time
	// limit is when it ends at the latest, which the message leaves out; zero if there is none.
	limit time.Time
}

// atMost returns the wait with a limit, nil if that has passed.
func (w wait) atMost(limit, now time.Time) *wait {
	if w.limit.IsZero() || limit.Before(w.limit) {
		w.limit = limit
	}

	if w.until.After(w.limit) {
		w.until = w.limit
	}

	if !now.Before(w.limit) {
		return nil
	}

	return &w
}

// or returns the one of two waits that may last longer; each of them may be nil.
func (w *wait) or(other *wait) *wait {
	if w == nil || other != nil && other.limit.After(w.limit) {
		return other
	}

	return w
}

// pending returns the upgrade to a version that waits, as the status shows it.
func (w *wait) pending(version string) *v1alpha2.PendingUpgrade {
	pending := &v1alpha2.PendingUpgrade{Version: version, Message: w.message}

	if !w.limit.IsZero() {
		pending.Message += ", until " + format(w.limit)
	}

	if !w.limit.Equal(w.until) && !w.limit.IsZero() {
		pending.Message += " at the latest"
	}

	if !w.until.IsZero() {
		pending.NotBefore = &metav1.Time{Time: w.until}
	}

	return pending
}

// patience is how long the upgrade of a provider waits for others. That is only for itself to decide: others may belong
// to other users.
type patience struct {
	// soak is spec.upgradePolicy.soakTime, and timeout is spec.release.timeout.
	soak, timeout time.Duration
	// now is the time of the API server.
	now time.Time
}

// forUpgrade returns what the last upgrade of another provider makes an upgrade wait for.
func (p patience) forUpgrade(other v1alpha2.Provider) *wait {
	status := other.GetStatus().AutomaticUpgrade
	if status == nil || status.Last == nil {
		return nil
	}

	last := status.Last
	name := fmt.Sprintf("%s to %s", v1alpha2.FullName(other), last.Version)

	switch {
	case last.Result == v1alpha2.UpgradeProgressing && !report.StandingOf(other).Blocked:
		found := wait{message: fmt.Sprintf("waits until the automatic upgrade of %s is healthy", name)}
		return found.atMost(last.Time.Add(p.timeout), p.now)
	case last.Result == v1alpha2.UpgradeSucceeded:
		until := last.Time.Add(p.soak)
		found := wait{message: "waits for spec.upgradePolicy.soakTime after the automatic upgrade of " + name, until: until}

		return found.atMost(until, p.now)
	}

	return nil
}

// mayFollow reports whether another upgrade of core may follow: core is installed, nothing stops it, and it is not
// being upgraded, which others wait for anyway.
func mayFollow(core v1alpha2.Provider) bool {
	status := core.GetStatus()
	upgrade := status.AutomaticUpgrade
	progresses := upgrade != nil && upgrade.Last != nil && upgrade.Last.Result == v1alpha2.UpgradeProgressing

	return status.InstalledVersion != nil && !report.StandingOf(core).Blocked && !progresses
}

// coreUpgrade is an upgrade of core that may follow.
type coreUpgrade struct {
	// looking is set while the source of core is asked. next is the version that it has offered; empty for none.
	looking bool
	next    string
	// earliest is when the upgrade can start.
	earliest time.Time
	// since is when another upgrade began to wait for one that is due.
	since time.Time
}

// isDue reports whether core could be upgraded now, as far as that is known.
func (u coreUpgrade) isDue(now time.Time) bool {
	return u.looking || u.next != "" && !u.earliest.After(now)
}

// forCore returns what an upgrade of core makes the upgrade of another provider wait for.
func (p patience) forCore(u coreUpgrade) *wait {
	found := wait{message: "waits for the automatic upgrade of core to " + u.next}

	switch {
	case u.looking:
		found.message = "waits until the source of core has answered, which is upgraded first"
	case u.next == "":
		return nil
	case !u.isDue(p.now):
		found.until = u.earliest
		return found.atMost(u.earliest.Add(p.timeout), p.now)
	}

	return found.atMost(u.since.Add(p.timeout), p.now)
}

// delays remembers since when upgrades wait, by what they wait for. It is lost with a restart, after which they wait
// once more. It is safe for concurrent use, and its zero value is ready to use.
type delays struct {
	mu    sync.Mutex
	since map[types.UID]map[string]time.Time
}

// begin returns since when the upgrade of a resource waits for something, which is now if it has not before.
func (d *delays) begin(resource types.UID, what string, now time.Time) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()

	if since, waits := d.since[resource][what]; waits {
		return since
	}

	if d.since == nil {
		d.since = map[types.UID]map[string]time.Time{}
	}

	if d.since[resource] == nil {
		d.since[resource] = map[string]time.Time{}
	}

	d.since[resource][what] = now

	return now
}

// end forgets one thing that the upgrade of a resource has waited for.
func (d *delays) end(resource types.UID, what string) {
	d.mu.Lock()
	defer d.mu.Unlock()

	delete(d.since[resource], what)
}

// endAll forgets what the upgrade of a resource has waited for.
func (d *delays) endAll(resource types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()

	delete(d.since, resource)
}
