package offers

import (
	"time"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/plan"
)

// Read reads the policy of a provider and the versions that its source offers. It asks the source when the window
// opens. The error is a *problem.Error.
func (t *Tracker) Read(provider v1alpha2.Provider) (Upgrading, error) {
	policy, err := ParsePolicy(provider.GetSpec())
	if policy == nil || err != nil {
		return Upgrading{}, err
	}

	now := time.Now()
	opening := policy.opening(now)

	var since time.Time
	if !opening.From.After(now) {
		since = opening.From
	}

	known := t.Look(provider, since)

	return Upgrading{
		Allowed:  true,
		Range:    provider.GetSpec().Version,
		Mode:     policy.Mode,
		Opening:  opening,
		Windowed: policy.Window != nil,
		Asked:    plan.Asked(provider),
		Offered:  known.Offered,
		Looking:  known.Pending,
		Now:      now,
	}, nil
}

// opening returns when upgrades may start: now, or the next time. Without a window that is always.
func (p *Policy) opening(now time.Time) Opening {
	if p.Window == nil {
		return Opening{Until: now.Add(time.Hour)}
	}

	return p.Window.Opening(now)
}
