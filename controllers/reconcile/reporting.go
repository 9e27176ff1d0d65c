package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/foreign"
	"github.com/capstan-project/capstan/controllers/health"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/offers"
	"github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/reconcile/report"
	"github.com/capstan-project/capstan/controllers/release/inventory"
)

// input returns what the run has found out and done so far.
func (r *run) input() report.Input {
	in := report.Input{
		Provider: report.Provider{
			Label:       v1alpha2.Label(r.provider),
			ReleaseName: v1alpha2.ReleaseName(r.provider),
			Generation:  r.provider.GetGeneration(),
			Status:      *r.provider.GetStatus(),
			Timeout:     r.policy.Timeout,
			Drift:       driftPolicy(r.provider.GetSpec()),
			Version:     r.provider.GetSpec().Version,
			RollbackTo:  ptr.Deref(plan.ReleaseSpec(r.provider.GetSpec()).RollbackTo, 0),

			OperatorSuspended: r.Suspended,
		},
		Installed:   r.seen(),
		Change:      r.progress(),
		Migration:   r.migration,
		Source:      r.source,
		Uninstalled: r.done.uninstalled,
		Now:         time.Now(),
	}

	in.Installed.Health = r.installed.replicas.reported(in.Installed.Health)

	if r.installed.record != nil {
		in.Automatic.Last = offers.LastUpgrade(
			r.provider.GetStatus().AutomaticUpgrade, r.installed.history, r.installed.record.Description)
	}

	if r.target != nil && r.target.Remote {
		in.RemoteInterval = r.RemoteInterval
	}

	return in
}

// seen returns what was seen of the release.
func (r *run) seen() report.Installed {
	seen := report.Installed{
		Observed:   r.installed.observed,
		History:    r.installed.history,
		Revision:   r.installed.revision,
		Drift:      r.drift(),
		Inventory:  r.inventory(),
		ClusterUID: string(r.self.Cluster),
		Identified: r.identified,
		Undeleted:  r.done.undeleted,
	}

	if r.installed.unconfirmed != nil {
		seen.Unconfirmed = r.installed.unconfirmed.Error()
	}

	if record := r.installed.record; record != nil {
		seen.Record = report.Record{
			Readable:    true,
			AppVersion:  record.AppVersion,
			Contract:    record.Contract,
			Description: record.Description,
			Paused:      record.Paused(),
		}

		if !r.installed.revision.Ours() && foreign.IsOther(r.provider, record) {
			seen.Record.OtherChart = describeChart(record)
		}
	}

	if found := r.installed.health; found != nil {
		seen.Health = report.Health{
			Checked:  true,
			Healthy:  found.Healthy(),
			Others:   r.installed.othersHealthy(),
			Failed:   found.Failed(),
			Final:    found.Verdict() == health.Stop,
			Finished: len(found.Finished()) > 0 && r.installed.isOwn(),
			Message:  r.installed.problem(),
		}
	}

	return seen
}

// progress returns how far the change got.
func (r *run) progress() report.Progress {
	made := report.Progress{
		Planned:       r.change.begun,
		InputsProblem: r.change.problem,
		Goal:          r.change.goal.version,
		Digest:        r.change.release.Digest,
		State:         r.change.release.State,
		Decision:      r.change.release.Decision,
		Pinned:        r.change.release.Pinned,
		Passed:        r.change.passed,
		CRDsChecked:   r.change.crdsChecked,
		Refusal:       r.done.refusal,
	}

	for _, f := range r.change.plan.Warnings.Flags {
		made.Flags = append(made.Flags, report.Flag{Deployment: f.Deployment, Warning: f.String()})
	}

	if r.done.failure != nil {
		made.Failure = r.done.failure.Error()
	}

	if len(r.change.release.Pin.Differences) > 0 {
		made.Pending = r.pendingMessage()
		made.PendingInputs = r.change.release.Pin.Differences[0].IsInput()
	}

	return made
}

// drift returns what differs from the newest revision.
func (r *run) drift() report.Drift {
	off := driftPolicy(r.provider.GetSpec()) == v1alpha2.DriftOff || !r.installed.isOwn()

	switch {
	case off && r.installed.record != nil:
		return report.Drift{Compared: true}
	case r.installed.deviations == nil:
		return report.Drift{}
	}

	found := report.Drift{Compared: true, Left: leftDeviations(slices.Concat(*r.installed.deviations, r.crdDeviations))}
	if r.installed.health != nil {
		found.Late = r.installed.health.Late()
	}

	return found
}

// inventory returns the objects that the release has, or may have: those of the status, of the newest revision if that
// is known to be the resource's, and those that were searched for because the status was lost.
func (r *run) inventory() []object.Key {
	objects := inventory.Union(inventory.Keys(r.provider.GetStatus().Inventory), r.found)
	if r.installed.isOwn() {
		objects = inventory.Union(objects, r.installed.record.Keys())
	}

	return objects
}

// leaves reports whether the release has objects that the newest revision does not have.
func (r *run) leaves() bool {
	return r.installed.isOwn() && len(inventory.Without(r.inventory(), r.installed.record.Keys())) > 0
}

// lookUpgrades finds out which upgrades the source offers.
func (r *run) lookUpgrades(ctx context.Context) {
	known := r.Offers.Look(r.provider, time.Time{})
	r.source = report.Source{Answered: known.Answered}

	installed := r.provider.GetStatus().InstalledVersion
	if r.installed.healthy() {
		installed = &r.installed.record.AppVersion
	}

	if installed != nil {
		r.source.Upgrades = offers.Upgrades(known.Offered, *installed, func(contract string) bool {
			return r.Preflight.Contract(ctx, r.provider, contract) == nil
		})
	}
}

// note changes the status that the rest of the run depends on.
func (r *run) note(change report.Change) { note(r.provider, change) }

// unlessCanceled returns how a run ended. One that was canceled, because the operator stops, has found out nothing that
// a user should read: what it did not get was not refused.
func unlessCanceled(ctx context.Context, ended report.Summary) report.Summary {
	if errors.Is(ctx.Err(), context.Canceled) {
		return report.Summary{Result: report.Result{Outcome: report.Repeated}}
	}

	return ended
}

// end reports how a run ended, and returns when the resource is requeued.
func (r *run) end(ended report.Summary) (ctrl.Result, error) {
	if ended.Outcome == report.Repeated {
		r.status.discard(r.provider)
		return ctrl.Result{RequeueAfter: max(time.Until(ended.At), time.Millisecond)}, nil
	}

	made := report.Of(r.input(), ended)
	*r.provider.GetStatus() = made.Status
	r.emit(r.provider, made.Events)

	if made.Drifted > 0 {
		r.Metrics.CountDriftDetected(r.provider, made.Drifted)
	}

	if made.Retry != "" {
		return ctrl.Result{}, errors.New(made.Retry)
	}

	return ctrl.Result{RequeueAfter: made.After}, nil
}

// emit emits events about an object.
func (r *Reconciler) emit(regarding runtime.Object, all []report.Event) {
	for _, e := range all {
		var related runtime.Object

		if e.Related != (object.Key{}) {
			apiVersion, kind := e.Related.ToAPIVersionAndKind()
			related = &corev1.ObjectReference{
				APIVersion: apiVersion, Kind: kind, Namespace: e.Related.Namespace, Name: e.Related.Name,
			}
		}

		r.Events.Eventf(regarding, related, e.Type, e.Reason, e.Action, "%s", e.Note)
	}
}
