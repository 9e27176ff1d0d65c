package autoupgrade

import (
	"time"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/clock"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/reconcile/decide"
	"github.com/capstan-project/capstan/controllers/upgrades"
)

// Reader reads what automatic upgrades depend on. It may be used by many goroutines.
type Reader struct {
	// Tracker knows what the sources offer.
	Tracker *upgrades.Tracker
	// Clock is that of the API server, which tells the time for windows.
	Clock *clock.Clock
}

// Read reads the policy of a provider, and what its source offers. The source is asked when the window opens. The error
// is a *PolicyError.
func (r *Reader) Read(provider v1alpha2.Provider) (decide.Upgrading, error) {
	policy, err := Parse(provider.GetSpec())
	if policy == nil || err != nil {
		return decide.Upgrading{}, err
	}

	now := r.Clock.Now()
	opening := policy.opening(now)
	known := r.look(provider, opening, now)

	return decide.Upgrading{
		Allowed:  true,
		Range:    provider.GetSpec().Version,
		Mode:     policy.Mode,
		Opening:  opening,
		Windowed: policy.Window != nil,
		Asked:    plan.Asked(provider),
		Offered:  known.Offered(),
		Looking:  known.Pending,
		Now:      now,
	}, nil
}

// look returns what is known of a provider's source, which is asked when the window opens.
func (r *Reader) look(provider v1alpha2.Provider, opening decide.Opening, now time.Time) upgrades.Known {
	if opening.From.After(now) {
		return r.Tracker.Look(provider, time.Time{})
	}

	return r.Tracker.Look(provider, r.Clock.Local(opening.From))
}

// opening returns when upgrades may start: now, or the next time. Without a window that is always.
func (p *Policy) opening(now time.Time) decide.Opening {
	if p.Window == nil {
		return decide.Opening{Until: now.Add(time.Hour)}
	}

	return p.Window.Opening(now)
}
