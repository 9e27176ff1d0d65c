package reconcile

import (
	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/preflight"
	"github.com/capstan-project/capstan/controllers/reconcile/decide"
	"github.com/capstan-project/capstan/controllers/reconcile/report"
)

// selectVersion selects the version that the range of the resource resolves to, if the operator may do so, and wakes
// the resource when that may have changed.
func (r *run) selectVersion(prevented decide.Prevented) report.Result {
	seen, err := r.upgrading(prevented)
	if err != nil {
		return failed(&preflight.Error{Reason: v1alpha2.InvalidUpgradePolicyReason, Message: err.Error()}, fetching)
	}

	selected, until := decide.Upgrade(seen)

	r.selection = selected
	r.note(report.WillUpgrade(selected.Pending))

	if !until.IsZero() {
		r.wakeAfter(until.Sub(seen.Now))
	}

	return report.Result{}
}

// upgrading returns what an automatic upgrade depends on.
func (r *run) upgrading(prevented decide.Prevented) (decide.Upgrading, error) {
	seen, err := r.Offers.Read(r.provider)
	if err != nil {
		return seen, err
	}

	seen.History, seen.Prevented = r.installed.history, prevented

	if record := r.installed.record; record != nil {
		seen.Contract = record.Contract
	}

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

// block gives up an automatic upgrade that was about to start, and returns to the version that is installed.
func (r *run) block(reason string) {
	r.selectVersion(decide.Prevented{Version: r.selection.Version, Message: reason})
	r.note(report.Resolved(r.selection.Version))
	r.change = change{}
}
