package autoupgrade

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// wait is what an upgrade waits for; nil for nothing.
type wait struct {
	message string
	// until is when the wait ends; zero if that is not known.
	until time.Time
}

// pending returns the upgrade to a version that waits, as the status shows it.
func (w *wait) pending(version string) *v1alpha2.PendingUpgrade {
	pending := &v1alpha2.PendingUpgrade{Version: version, Message: w.message}
	if !w.until.IsZero() {
		pending.NotBefore = &metav1.Time{Time: w.until}
	}

	return pending
}

// waitForOthers returns what the upgrade of a provider waits for that other providers of its cluster do: core comes
// first, there is one upgrade at a time, and each is given time to prove itself. If there is nothing, no other
// upgrade starts in the cluster until Release.
func (s *Selector) waitForOthers(
	ctx context.Context, provider v1alpha2.Provider, policy *Policy, now time.Time,
) (*wait, error) {
	if !s.take(provider) {
		return &wait{message: "waits for another automatic upgrade, which is starting"}, nil
	}

	for _, t := range v1alpha2.ProviderTypes() {
		list := t.NewList()
		if err := s.Cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}

		for _, p := range list.GetItems() {
			automatic := Enabled(p.GetSpec()) || p.GetStatus().AutomaticUpgrade != nil
			if !automatic || p.GetUID() == provider.GetUID() || !s.Cluster.Same(p, provider) {
				continue
			}

			// The cache may not show yet what another upgrade has just written.
			other := t.New()
			if err := s.APIReader.Get(ctx, client.ObjectKeyFromObject(p), other); err != nil {
				if client.IgnoreNotFound(err) == nil {
					continue
				}

				return nil, err
			}

			found := waitForUpgrade(other, policy.Soak, now)
			if found == nil && provider.ProviderType() != v1alpha2.CoreProviderType {
				found = s.waitForCore(other, now)
			}

			if found != nil {
				return found, nil
			}
		}
	}

	return nil, nil
}

// waitForUpgrade returns what the last upgrade of another provider makes others wait for.
func waitForUpgrade(other v1alpha2.Provider, soak time.Duration, now time.Time) *wait {
	status := other.GetStatus().AutomaticUpgrade
	if status == nil || status.Last == nil {
		return nil
	}

	last := status.Last
	name := fmt.Sprintf("%s to %s", v1alpha2.FullName(other), last.Version)
	until := last.Time.Add(soak)

	switch {
	case last.Result == v1alpha2.UpgradeProgressing:
		return &wait{message: fmt.Sprintf("waits until the automatic upgrade of %s is healthy", name)}
	case last.Result == v1alpha2.UpgradeSucceeded && now.Before(until):
		return &wait{message: fmt.Sprintf("waits for spec.upgradePolicy.soakTime after the automatic upgrade of %s, until %s",
			name, format(until)), until: until}
	}

	return nil
}

// waitForCore returns why other providers wait if the provider is core, and an upgrade of it will follow.
func (s *Selector) waitForCore(core v1alpha2.Provider, now time.Time) *wait {
	spec := core.GetSpec()
	stopped := spec.Suspend || spec.Paused || spec.Release != nil && spec.Release.RollbackTo != nil

	policy, err := Parse(spec)
	if core.ProviderType() != v1alpha2.CoreProviderType || stopped || policy == nil || err != nil {
		return nil
	}

	opening := policy.opening(now)

	known := s.look(core, opening, now)
	if known.Pending {
		return &wait{message: "waits until the source of core has answered, which is upgraded first"}
	}

	next := nextOf(core, policy, known.Offered())
	if next == "" {
		return nil
	}

	found := &wait{message: "waits for the automatic upgrade of core to " + next}
	if !opening.Includes(now) {
		found.until = opening.From
	}

	return found
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
