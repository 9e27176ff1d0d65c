package autoupgrade

import (
	"context"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/preflight"
)

// What an upgrade waits for, next to the upgrades of other namespaces.
const (
	toStart = "start"
	forCore = "core"
)

// waitForOthers returns what the upgrade of a provider waits for that other providers of its cluster do: core comes
// first, there is one upgrade at a time, and each is given time to prove itself. If there is nothing, no other
// upgrade starts in the cluster until Release.
func (s *Selector) waitForOthers(
	ctx context.Context, provider v1alpha2.Provider, policy *Policy, now time.Time,
) (*wait, error) {
	p := patience{soak: policy.Soak, timeout: plan.Timeout(provider.GetSpec()), now: now}

	if found := s.waitToStart(provider, p); found != nil {
		return found, nil
	}

	checker := &preflight.Checker{Client: s.Cache, Cluster: s.Cluster}

	core, err := checker.Core(ctx, provider)
	if err != nil {
		return nil, err
	}

	var longest *wait

	// All are looked at, because the time that is left for each namespace passes at the same time.
	for _, t := range v1alpha2.ProviderTypes() {
		list := t.NewList()
		if err := s.Cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}

		for _, listed := range list.GetItems() {
			automatic := Enabled(listed.GetSpec()) || listed.GetStatus().AutomaticUpgrade != nil
			if !automatic || listed.GetUID() == provider.GetUID() || !s.Cluster.Same(listed, provider) {
				continue
			}

			// The cache may not show yet what another upgrade has just written.
			other := t.New()
			if err := s.APIReader.Get(ctx, client.ObjectKeyFromObject(listed), other); err != nil {
				if client.IgnoreNotFound(err) == nil {
					continue
				}

				return nil, err
			}

			isCore := core != nil && core.GetUID() == other.GetUID()

			longest = longest.or(s.waitForUpgrade(provider, other, isCore, p))
			if isCore {
				longest = longest.or(s.waitForCore(provider, other, p))
			}
		}
	}

	return longest, nil
}

// waitToStart returns what an upgrade waits for while another one is starting. Otherwise it is the one that starts.
func (s *Selector) waitToStart(provider v1alpha2.Provider, p patience) *wait {
	uid := provider.GetUID()

	if s.take(provider) {
		s.delays.end(uid, toStart)
		return nil
	}

	found := &wait{message: "waits for another automatic upgrade, which is starting"}

	return found.atMost(s.delays.begin(uid, toStart, p.now).Add(p.timeout), p.now)
}

// waitForUpgrade returns what the last upgrade of another provider makes the upgrade of a provider wait for. Providers
// of another namespace may belong to others, who must not hold it up by one upgrade after the other.
func (s *Selector) waitForUpgrade(provider, other v1alpha2.Provider, isCore bool, p patience) *wait {
	found := p.forUpgrade(other)
	if found == nil || isCore || other.GetNamespace() == provider.GetNamespace() {
		return found
	}

	since := s.delays.begin(provider.GetUID(), "namespace "+other.GetNamespace(), p.now)

	return found.atMost(since.Add(p.soak+p.timeout), p.now)
}

// waitForCore returns what the upgrade of a provider waits for if an upgrade of core will follow.
func (s *Selector) waitForCore(provider, core v1alpha2.Provider, p patience) *wait {
	policy, err := Parse(core.GetSpec())
	if policy == nil || err != nil || !mayFollow(core) {
		s.delays.end(provider.GetUID(), forCore)
		return nil
	}

	opening := policy.opening(p.now)
	known := s.look(core, opening, p.now)
	upgrade := coreUpgrade{
		looking: known.Pending, next: nextOf(core, policy, known.Offered()), earliest: earliest(core, opening),
	}

	if upgrade.isDue(p.now) {
		upgrade.since = s.delays.begin(provider.GetUID(), forCore, p.now)
	} else {
		s.delays.end(provider.GetUID(), forCore)
	}

	return p.forCore(upgrade)
}

// earliest returns when an upgrade of core can start: when its window opens, and its own wait has ended.
func earliest(core v1alpha2.Provider, opening Opening) time.Time {
	status := ptr.Deref(core.GetStatus().AutomaticUpgrade, v1alpha2.AutomaticUpgradeStatus{})
	if pending := status.Pending; pending != nil && pending.NotBefore != nil && pending.NotBefore.After(opening.From) {
		return pending.NotBefore.Time
	}

	return opening.From
}

// nextOf returns the version that a provider is upgraded to next, according to its status; empty if there is none,
// or a check prevents it.
func nextOf(provider v1alpha2.Provider, policy *Policy, offered []v1alpha2.AvailableUpgrade) string {
	status := provider.GetStatus()
	upgrade := ptr.Deref(status.AutomaticUpgrade, v1alpha2.AutomaticUpgradeStatus{})

	choice := Choice{
		Range: provider.GetSpec().Version, Mode: policy.Mode,
		Installed: ptr.Deref(status.InstalledVersion, ""), Contract: ptr.Deref(status.Contract, ""),
	}
	if last := upgrade.Last; last != nil && last.Result == v1alpha2.UpgradeFailed {
		choice.GivenUp = []string{last.Version}
	}

	best := choice.Best(offered)
	if pending := upgrade.Pending; pending != nil && pending.Blocked && pending.Version == best {
		return ""
	}

	return best
}

// take reports whether the upgrade of a provider may be the one that starts in its cluster.
func (s *Selector) take(provider v1alpha2.Provider) bool {
	return s.starting.Take(s.Cluster(provider), provider.GetUID())
}
