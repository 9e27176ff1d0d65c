package autoupgrade

import (
	"context"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/clock"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/preflight"
	"github.com/capstan-project/capstan/controllers/reconcile/decide"
	"github.com/capstan-project/capstan/controllers/reconcile/report"
	"github.com/capstan-project/capstan/controllers/upgrades"
)

// Reader reads what automatic upgrades depend on. It may be used by many goroutines.
type Reader struct {
	// Resources lists provider resources, and shows what the operator has written last.
	Resources client.Reader
	// Cluster tells the clusters of providers apart.
	Cluster preflight.ClusterOf
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
		Answers:  decide.Answers{},
		Allowed:  true,
		Range:    provider.GetSpec().Version,
		Mode:     policy.Mode,
		Soak:     policy.Soak,
		Timeout:  plan.Timeout(provider.GetSpec()),
		Opening:  opening,
		Windowed: policy.Window != nil,
		Asked:    plan.Asked(provider),
		Offered:  known.Offered(),
		Looking:  known.Pending,
		Now:      now,
	}, nil
}

// ReadOthers adds what automatic upgrades of other providers of the cluster do.
func (r *Reader) ReadOthers(ctx context.Context, provider v1alpha2.Provider, seen *decide.Upgrading) error {
	checker := &preflight.Checker{Client: r.Resources, Cluster: r.Cluster}

	core, err := checker.Core(ctx, provider)
	if err != nil {
		return err
	}

	others, err := checker.Others(ctx, provider)

	for _, other := range others {
		isCore := core != nil && core.GetUID() == other.GetUID()
		if isCore {
			seen.Core = r.coreUpgrade(other, seen.Now)
		}

		if last := lastOf(other); last != nil {
			seen.Others = append(seen.Others, decide.OtherUpgrade{
				Provider:  v1alpha2.FullName(other),
				Namespace: other.GetNamespace(),
				Last:      *last,
				Blocked:   report.StandingOf(other).Blocked,
				Trusted:   isCore || other.GetNamespace() == provider.GetNamespace(),
			})
		}
	}

	return err
}

// coreUpgrade returns the upgrade of core that may follow.
func (r *Reader) coreUpgrade(core v1alpha2.Provider, now time.Time) decide.CoreUpgrade {
	policy, err := Parse(core.GetSpec())
	if policy == nil || err != nil || !mayFollow(core) {
		return decide.CoreUpgrade{}
	}

	opening := policy.opening(now)
	known := r.look(core, opening, now)
	found := upgradeOfCore(core, policy, opening)
	found.Provider, found.Offered, found.Looking = v1alpha2.FullName(core), known.Offered(), known.Pending

	return found
}

// look returns what is known of a provider's source, which is asked when the window opens.
func (r *Reader) look(provider v1alpha2.Provider, opening decide.Opening, now time.Time) upgrades.Known {
	if opening.From.After(now) {
		return r.Tracker.Look(provider, time.Time{})
	}

	return r.Tracker.Look(provider, r.Clock.Local(opening.From))
}

// mayFollow reports whether another upgrade of core may follow: core is installed, nothing stops it, and it is not
// being upgraded, which others wait for anyway.
func mayFollow(core v1alpha2.Provider) bool {
	last := lastOf(core)
	progresses := last != nil && last.Result == v1alpha2.UpgradeProgressing

	return core.GetStatus().InstalledVersion != nil && !report.StandingOf(core).Blocked && !progresses
}

// upgradeOfCore returns the next upgrade of core, according to its resource: it starts when the window opens, and its
// own wait has ended.
func upgradeOfCore(core v1alpha2.Provider, policy *Policy, opening decide.Opening) decide.CoreUpgrade {
	status := core.GetStatus()
	found := decide.CoreUpgrade{
		Possible: true,
		Earliest: opening.From,
		Choice: decide.Choice{
			Range: core.GetSpec().Version, Mode: policy.Mode,
			Installed: ptr.Deref(status.InstalledVersion, ""), Contract: ptr.Deref(status.Contract, ""),
		},
	}

	if last := lastOf(core); last != nil && last.Result == v1alpha2.UpgradeFailed {
		found.Choice.GivenUp = []string{last.Version}
	}

	pending := ptr.Deref(status.AutomaticUpgrade, v1alpha2.AutomaticUpgradeStatus{}).Pending
	if pending == nil {
		return found
	}

	if pending.Blocked {
		found.Prevented = pending.Version
	}

	if pending.NotBefore != nil && pending.NotBefore.After(opening.From) {
		found.Earliest = pending.NotBefore.Time
	}

	return found
}

// lastOf returns the last automatic upgrade of a provider; nil for none.
func lastOf(provider v1alpha2.Provider) *v1alpha2.AutomaticUpgrade {
	return ptr.Deref(provider.GetStatus().AutomaticUpgrade, v1alpha2.AutomaticUpgradeStatus{}).Last
}

// opening returns when upgrades may start: now, or the next time. Without a window that is always.
func (p *Policy) opening(now time.Time) decide.Opening {
	if p.Window == nil {
		return decide.Opening{Until: now.Add(time.Hour)}
	}

	return p.Window.Opening(now)
}
