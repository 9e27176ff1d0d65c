package autoupgrade

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/clock"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/preflight"
	"github.com/capstan-project/capstan/controllers/release/state"
	"github.com/capstan-project/capstan/controllers/upgrades"
)

const (
	// lookInterval is how often the source is asked for new versions.
	lookInterval = time.Hour + time.Second
	// othersInterval is how often an upgrade looks whether other providers let it start, and blockedInterval how
	// often it is tried again while a check prevents it.
	othersInterval  = 5 * time.Second
	blockedInterval = 10 * time.Minute
	// recheckDelay lets the cache of releases see what was recorded.
	recheckDelay = time.Second
)

// Selector selects the versions of providers with automatic upgrades. It may be used by many goroutines.
type Selector struct {
	// Cache lists provider resources, and APIReader reads them from the API server.
	Cache, APIReader client.Reader
	// Cluster tells the clusters of providers apart.
	Cluster preflight.ClusterOf
	// Tracker knows what the sources offer.
	Tracker *upgrades.Tracker
	// Clock is that of the API server, which tells the time for windows.
	Clock *clock.Clock
	// Wake enqueues a resource after a delay.
	Wake health.Wake

	// starting are the providers whose upgrade is starting, by cluster.
	starting preflight.Holders[string]
	// delays tells since when upgrades wait for other providers.
	delays delays
}

// Installed is what is known of the installed release of a provider.
type Installed struct {
	History state.History
	// Contract of the newest revision, and its description in Helm's history.
	Contract, Description string
	// Obstacle is why nothing must be upgraded now, as a clause; empty for nothing.
	Obstacle string
}

// Select selects the version of a resource, and wakes the resource when that may have changed. If the selection
// starts an upgrade, no other starts in the cluster until Release. The error is a *preflight.Error if the policy cannot
// be used.
func (s *Selector) Select(ctx context.Context, provider v1alpha2.Provider, installed Installed) (Selection, error) {
	policy, err := Parse(provider.GetSpec())
	if err != nil {
		return Selection{}, &preflight.Error{Reason: v1alpha2.InvalidUpgradePolicyReason, Message: err.Error()}
	}

	if policy == nil {
		s.delays.endAll(provider.GetUID())

		return Selection{}, nil
	}

	now := s.Clock.Now()
	past := examine(installed.History, plan.Asked(provider))
	opening := policy.opening(now)
	known := s.look(provider, opening, now)
	best := ""

	if past.settled {
		best = Choice{
			Range: provider.GetSpec().Version, Mode: policy.Mode,
			Installed: past.version, Contract: installed.Contract, GivenUp: past.givenUp,
		}.Best(known.Offered())
	}

	if best == "" {
		s.delays.endAll(provider.GetUID())

		return past.selection(), nil
	}

	found, err := s.waitFor(ctx, provider, installed, occasion{policy, opening, now, known.Pending})
	if err != nil {
		return Selection{}, err
	}

	if found != nil {
		selection := past.selection()
		selection.Pending = found.pending(best)

		return selection, nil
	}

	s.delays.endAll(provider.GetUID())

	starting := Selection{Version: best, Automatic: v1alpha2.LabelValue(best), From: past.version}
	if policy.Window != nil {
		starting.Until = opening.Until
	}

	return starting, nil
}

// occasion is when an upgrade may start.
type occasion struct {
	policy  *Policy
	opening Opening
	now     time.Time
	// looking is set while the source is being asked.
	looking bool
}

// waitFor returns what an upgrade waits for, and wakes the resource when that may have ended; nil for nothing.
func (s *Selector) waitFor(
	ctx context.Context, provider v1alpha2.Provider, installed Installed, c occasion,
) (*wait, error) {
	switch {
	case installed.Obstacle != "":
		return &wait{message: "waits because " + installed.Obstacle}, nil
	case !c.opening.Includes(c.now):
		message := "waits for the window, which opens at " + format(c.opening.From)
		return &wait{message: message, until: c.opening.From}, nil
	case c.looking:
		s.wake(provider, othersInterval)
		return &wait{message: "waits until the source has answered"}, nil
	}

	found, err := s.waitForOthers(ctx, provider, c.policy, c.now)
	if err != nil || found == nil {
		return nil, err
	}

	s.Release(provider.GetUID())

	delay := othersInterval
	if found.until.After(c.now) {
		delay = found.until.Sub(c.now)
	}

	s.wake(provider, delay)

	return found, nil
}

// Block takes back a selection that starts an upgrade, because a check prevents it. The message is why.
func (s *Selector) Block(
	provider v1alpha2.Provider, selection Selection, message string, history state.History,
) Selection {
	s.Release(provider.GetUID())
	s.wake(provider, blockedInterval)

	stays := examine(history, plan.Asked(provider)).selection()
	stays.Pending = &v1alpha2.PendingUpgrade{Version: selection.Version, Message: bounded(message), Blocked: true}

	return stays
}

// Forget drops what is known of a resource that is gone.
func (s *Selector) Forget(resource types.UID) {
	s.Release(resource)
	s.delays.endAll(resource)
}

// Release lets upgrades of other providers start.
func (s *Selector) Release(resource types.UID) { s.starting.Release(resource) }

// Recheck wakes a resource with automatic upgrades after something was recorded with its newest revision: an upgrade
// may follow only one that is healthy, and fulfills what the resource asks for.
func (s *Selector) Recheck(provider v1alpha2.Provider) {
	if Enabled(provider.GetSpec()) {
		s.wake(provider, recheckDelay)
	}
}

// look returns what is known of a provider's source, which is asked when the window opens, and wakes the provider
// when it is time to ask again.
func (s *Selector) look(provider v1alpha2.Provider, opening Opening, now time.Time) upgrades.Known {
	if opening.From.After(now) {
		s.wake(provider, min(lookInterval, opening.From.Sub(now)))
		return s.Tracker.Look(provider, time.Time{})
	}

	s.wake(provider, lookInterval)

	return s.Tracker.Look(provider, s.Clock.Local(opening.From))
}

func (s *Selector) wake(provider v1alpha2.Provider, after time.Duration) {
	s.Wake(v1alpha2.Label(provider), provider.GetNamespace(), after)
}

// opening returns when upgrades may start: now, or the next time. Without a window that is always.
func (p *Policy) opening(now time.Time) Opening {
	if p.Window == nil {
		return Opening{Until: now.Add(time.Hour)}
	}

	return p.Window.Opening(now)
}

// bounded returns a text for the status.
func bounded(text string) string {
	const maxLength = 1000
	return object.OneLine(object.Printable(text), maxLength)
}

// format returns a time for users.
func format(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
