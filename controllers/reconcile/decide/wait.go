package decide

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// forCore is what an upgrade waits for, next to the upgrades of other namespaces.
const forCore = "core"

// OtherUpgrade is the last automatic upgrade of another provider of the cluster.
type OtherUpgrade struct {
	// Provider is its name for people, and Namespace that of its resource.
	Provider, Namespace string
	Last                v1alpha2.AutomaticUpgrade
	// Blocked is set if the upgrade does not continue without a user.
	Blocked bool
	// Trusted is set for core, and for providers of the same namespace: who owns these can stop the provider anyway.
	Trusted bool
}

// CoreUpgrade is an automatic upgrade of core that may follow; zero if none may.
type CoreUpgrade struct {
	// Provider is the name of core's resource for people.
	Provider string
	// Possible is set if core is installed, nothing stops it, and it is not being upgraded, which others wait for anyway.
	Possible bool
	// Choice among what is Offered. Looking is set while the source of core is asked.
	Choice  Choice
	Offered []v1alpha2.AvailableUpgrade
	Looking bool
	// Prevented is the version that a check prevents; empty for none.
	Prevented string
	// Earliest is when the upgrade can start.
	Earliest time.Time
}

// next returns the version that core is upgraded to next; empty if there is none, or a check prevents it.
func (c CoreUpgrade) next() string {
	if best := c.Choice.Best(c.Offered); best != c.Prevented {
		return best
	}

	return ""
}

// isDue reports whether core could be upgraded now, as far as that is known.
func (c CoreUpgrade) isDue(now time.Time) bool {
	return c.Looking || c.next() != "" && !c.Earliest.After(now)
}

// wait is what an upgrade waits for; nil for nothing.
type wait struct {
	message string
	// other is the provider whose upgrade is not done yet; empty if it waits for something else.
	other string
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

// maxPatience limits how long an upgrade waits for others that do not get done, whatever its own timeout is.
const maxPatience = time.Hour

// patience returns how long the upgrade waits for others that do not get done.
func (u Upgrading) patience() time.Duration { return min(u.Timeout, maxPatience) }

// or returns the one of two waits that may last longer; each of them may be nil.
func (w *wait) or(other *wait) *wait {
	if w == nil || other != nil && other.limit.After(w.limit) {
		return other
	}

	return w
}

// pending returns the upgrade to a version that waits, as the status shows it.
func (w wait) pending(version string) *v1alpha2.PendingUpgrade {
	pending := &v1alpha2.PendingUpgrade{Version: version, Message: w.message, WaitsFor: w.other}

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

// longestWait returns what the upgrade waits for that other providers do; nil for nothing. How long it waits is only
// for its own policy to decide: others may belong to other users. Since when it waits is noted.
func (u Upgrading) longestWait(since map[string]time.Time) *wait {
	// All are looked at, because the time that is left for each namespace passes at the same time.
	longest := u.waitForCore(since)
	for _, other := range u.Others {
		longest = longest.or(u.waitForUpgrade(other, since))
	}

	return longest
}

// waitForUpgrade returns what the last upgrade of another provider makes the upgrade wait for. Providers of another
// namespace may belong to others, who must not hold it up by one upgrade after the other.
func (u Upgrading) waitForUpgrade(other OtherUpgrade, since map[string]time.Time) *wait {
	found := u.waitForLast(other)
	if found == nil || other.Trusted {
		return found
	}

	began := begin(since, "namespace "+other.Namespace, u.Now)

	return found.atMost(began.Add(u.Soak+u.patience()), u.Now)
}

func (u Upgrading) waitForLast(other OtherUpgrade) *wait {
	last := other.Last
	name := fmt.Sprintf("%s to %s", other.Provider, last.Version)

	switch {
	case last.Result == v1alpha2.UpgradeProgressing && !other.Blocked:
		found := wait{
			message: fmt.Sprintf("waits until the automatic upgrade of %s is healthy", name), other: other.Provider,
		}

		return found.atMost(last.Time.Add(u.patience()), u.Now)
	case last.Result == v1alpha2.UpgradeSucceeded:
		until := last.Time.Add(u.Soak)
		found := wait{message: "waits for spec.upgradePolicy.soakTime after the automatic upgrade of " + name, until: until}

		return found.atMost(until, u.Now)
	}

	return nil
}

// waitForCore returns what an upgrade of core makes the upgrade of another provider wait for.
func (u Upgrading) waitForCore(since map[string]time.Time) *wait {
	core := u.Core
	if !core.Possible || !core.isDue(u.Now) {
		delete(since, forCore)
	}

	found := wait{message: "waits for the automatic upgrade of core to " + core.next()}

	switch {
	case !core.Possible:
		return nil
	case core.Looking:
		found.message = "waits until the source of core has answered, which is upgraded first"
	case core.next() == "":
		return nil
	case !core.isDue(u.Now):
		found.until = core.Earliest
		return found.atMost(core.Earliest.Add(u.patience()), u.Now)
	}

	found.other = core.Provider

	return found.atMost(begin(since, forCore, u.Now).Add(u.patience()), u.Now)
}

// begin returns since when an upgrade waits for something, which is now if it has not before.
func begin(since map[string]time.Time, what string, now time.Time) time.Time {
	if _, waits := since[what]; !waits {
		since[what] = now
	}

	return since[what]
}
