package provider

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/ranges"
	"github.com/capstan-project/capstan/controllers/offers"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/problem"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// selectVersion selects the version that the range of the resource resolves to, if the operator may do so. An upgrade
// that was prevented before starts once something has changed that its check depended on.
func (r *run) selectVersion(ctx context.Context) error {
	if err := r.selectUnless(offers.Prevented{}); err != nil || !r.selection.Starts() {
		return err
	}

	found, err := r.findBasis(ctx)
	if err != nil {
		return err
	}

	if last := r.memory.prevented; last.holds(r.selection.Version, found, time.Now()) {
		return r.selectUnless(last.Prevented)
	}

	r.memory.prevented = prevented{basis: found}

	return nil
}

// selectUnless selects the version that the range resolves to unless an upgrade is prevented, and wakes the resource
// when that may have changed.
func (r *run) selectUnless(prevented offers.Prevented) error {
	seen, err := r.upgrading(prevented)
	if err != nil {
		return err
	}

	selected, until := offers.Upgrade(seen)

	r.selection = selected
	r.noteUpgrade(selected.Pending)

	if !until.IsZero() {
		r.wakeAfter(until.Sub(seen.Now))
	}

	return nil
}

// noteUpgrade notes the automatic upgrade that follows; nil for none.
func (r *run) noteUpgrade(pending *v1alpha2.PendingUpgrade) {
	status := r.provider.GetStatus()

	switch {
	case status.AutomaticUpgrade != nil:
		status.AutomaticUpgrade.Pending = pending
	case pending != nil:
		status.AutomaticUpgrade = &v1alpha2.AutomaticUpgradeStatus{Pending: pending}
	}
}

// upgrading returns what an automatic upgrade depends on.
func (r *run) upgrading(prevented offers.Prevented) (offers.Upgrading, error) {
	seen, err := r.Offers.Read(r.provider)
	if err != nil {
		return seen, err
	}

	seen.History, seen.Prevented, seen.GivenUp = r.installed.History, prevented, r.givenUp()
	seen.Contract = r.installed.contract()

	switch {
	case r.provider.GetSpec().Paused:
		seen.Obstacle = "spec.paused is true"
	case !r.installed.healthy():
		seen.Obstacle = "the provider is not healthy"
	case r.installed.deviations != nil && len(leftDeviations(*r.installed.deviations)) > 0:
		seen.Obstacle = "objects have drifted"
	}

	return seen, nil
}

// givenUp returns the version that was given up since a user has asked for anything; empty for none. If the status was
// lost, only the annotation tells.
func (r *run) givenUp() string {
	if r.change.release.Decision.Action == state.Stop && r.plans() {
		return r.change.goal.version
	}

	noted := r.provider.GetAnnotations()[v1alpha2.GivenUpVersionAnnotation]

	lost := r.provider.GetStatus().ObservedGeneration <= 0
	if !lost && (r.policy.SpecChanged || r.policy.Requested) {
		noted = ""
	}

	return cmp.Or(offers.GivenUp(r.installed.History, plan.Asked(r.provider)), noted)
}

// triesGivenUp reports whether the change is to a version that was given up before the status was lost, so that there
// would be no revision to return to.
func (r *run) triesGivenUp() bool {
	lost := r.change.release.State.State == state.Unconfirmed || r.change.release.State.State == state.RecordsLost
	return lost && r.upgrades() && r.change.goal.version == r.givenUp()
}

// refuseGivenUp ends a change to a version that was given up.
func (r *run) refuseGivenUp(context.Context) error {
	return problem.Fail(v1alpha2.InstallFailedReason, "%s was given up before, and no revision is known to return to; %s",
		r.change.goal.version, r.remedy("to try it again"))
}

// noteVersions writes into annotations of the resource what a lost status must not undo: the version that its range was
// resolved to, and the one that was given up. If it does not succeed, a later reconcile does it.
func (r *run) noteVersions(ctx context.Context) error {
	// A reconcile that ended before it planned does not know it after the status was lost.
	known := r.provider.GetAnnotations()[v1alpha2.ResolvedVersionAnnotation]

	resolved := cmp.Or(r.provider.GetStatus().DesiredVersion, known)
	if ranges.IsSame(resolved, r.provider.GetSpec().Version) {
		resolved = ""
	}

	annotations := maps.Clone(r.provider.GetAnnotations())
	for name, value := range map[string]string{
		v1alpha2.ResolvedVersionAnnotation: resolved, v1alpha2.GivenUpVersionAnnotation: r.givenUp(),
	} {
		if value == "" {
			delete(annotations, name)
			continue
		}

		if annotations == nil {
			annotations = map[string]string{}
		}

		annotations[name] = value
	}

	if maps.Equal(annotations, r.provider.GetAnnotations()) {
		return nil
	}

	before := cloneProvider(r.provider)
	before.SetResourceVersion(r.status.version)

	changed := cloneProvider(before) // as in setFinalizer
	changed.SetAnnotations(annotations)

	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})

	err := r.Client.Patch(ctx, changed, patch, client.FieldOwner(v1alpha2.FieldOwner))
	if err == nil {
		r.provider.SetAnnotations(annotations)
		r.provider.SetResourceVersion(changed.GetResourceVersion())
		r.status.changed(changed)
	}

	if apierrors.IsConflict(err) {
		return nil
	}

	return client.IgnoreNotFound(err)
}

// block gives up an automatic upgrade that was about to start, and returns to the version that is installed.
func (r *run) block(reason string) {
	r.memory.prevented.Prevented = offers.Prevented{
		Version: r.selection.Version, Message: reason, Until: time.Now().Add(offers.PreventedInterval),
	}

	_ = r.selectUnless(r.memory.prevented.Prevented)
	r.provider.GetStatus().DesiredVersion = r.selection.Version
	r.change = change{}
}

// lookUpgrades finds out which upgrades the source offers.
func (r *run) lookUpgrades(ctx context.Context) {
	status := r.provider.GetStatus()

	known := r.Offers.Look(r.provider, time.Time{})
	r.offersKnown = known.Answered

	installed := ptr.Deref(status.InstalledVersion, "")
	if r.installed.healthy() {
		installed = r.installed.Record.AppVersion
	}

	shown := status.AvailableUpgrades

	if r.offersKnown {
		r.offered = r.upgradesFrom(ctx, r.provider, installed, known.Offered)
		shown = r.offered
	}

	if known.Pending && !offers.Automatic(r.provider.GetSpec()) {
		provider := cloneProvider(r.provider) // the reconcile continues meanwhile

		r.Offers.WakeForNews(provider, func(ctx context.Context, offered []v1alpha2.AvailableUpgrade) bool {
			return !slices.Equal(r.upgradesFrom(ctx, provider, installed, offered), shown)
		})
	}
}

// upgradesFrom returns the available versions that an installed version may be upgraded to.
func (r *Reconciler) upgradesFrom(
	ctx context.Context, provider v1alpha2.Provider, installed string, offered []v1alpha2.AvailableUpgrade,
) []v1alpha2.AvailableUpgrade {
	return offers.Upgrades(offered, installed, func(contract string) bool {
		return r.Preflight.Contract(ctx, provider, contract) == nil
	})
}
