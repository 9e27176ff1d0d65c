package provider

import (
	"context"
	"errors"
	"time"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/offers"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// announceChange makes the change known in the status before it begins, unless the other resources of the cluster have
// begun to change since they were looked at first.
func (r *run) announceChange(ctx context.Context) error {
	if err := r.checkOthers(ctx); err != nil {
		return err
	}

	if err := checkStopping(ctx); err != nil {
		return err
	}

	next := max(r.installed.Newest.Number, state.Last(r.provider.GetStatus())) + 1

	err := r.record(ctx, func(status *v1alpha2.ProviderStatus) {
		state.Begin(status, !r.policy.Existed, next, r.change.plan.Version)

		if r.selection.Starts() {
			upgrade := r.selection.Started(r.installed.Newest.Number, time.Now())
			status.AutomaticUpgrade = &v1alpha2.AutomaticUpgradeStatus{Last: &upgrade}
		}
	})
	if err != nil {
		return err
	}

	if r.selection.Starts() {
		r.emit(r.provider, upgradeStarted(r.selection.String()))
		return nil
	}

	skipped := offers.SkippedMinors(r.installed.version(), r.change.plan.Version, r.change.plan.Chart.Minors())
	r.emit(r.provider, skippedMinors(offers.SkipsMessage(r.change.plan.Version, skipped)))

	return nil
}

// aloneTime is how long a provider that was not found elsewhere is taken to be nowhere else: a first installation is
// prepared meanwhile. One that waits for longer is looked for again.
const aloneTime = 10 * time.Second

// checkOthers looks at the other resources once more.
func (r *run) checkOthers(ctx context.Context) error {
	if !r.policy.Existed {
		recorded := func(v1alpha2.Provider) bool { return false } // was asked before, and takes requests
		if err := r.Preflight.Identity(ctx, r.provider, recorded); err != nil {
			return err
		}

		if time.Since(r.memory.alone) > aloneTime {
			if err := r.checkInstalledElsewhere(ctx); err != nil {
				return err
			}
		}
	}

	if r.changesVersion() {
		return r.checkTurn(ctx)
	}

	return nil
}

// checkStopping returns an error once the operator stops, or no longer leads: nothing begins then. A reconcile that
// only takes too long may begin what it has prepared, since a slow cluster would never get there otherwise.
func checkStopping(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}

	return nil
}
