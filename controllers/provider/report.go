package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/offers"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// Report is what is known after a reconcile.
type Report struct {
	Status v1alpha2.ProviderStatus
	Events []Event
	// Retry is the problem of a reconcile that is tried again with back-off; empty if it is not.
	Retry string
	// After is when to requeue the resource; zero if an event, or Retry, does.
	After time.Duration
	// Drifted is how many objects are newly known to differ from the release.
	Drifted int
	// Told is the failed attempt that an event was about last.
	Told attempt
}

// report returns what is known at the end of a reconcile. It changes nothing.
func (r *run) report(ended Summary, now time.Time) Report {
	result := ended.Result
	status := *r.provider.GetStatus().DeepCopy()
	written := &conditions{list: status.Conditions, generation: r.provider.GetGeneration(), now: now}
	before := slices.Clone(written.list)
	report := Report{}

	// Until all objects of the release are known, its status is one that was lost.
	if status.ObservedGeneration = r.provider.GetGeneration(); r.lost() {
		status.ObservedGeneration = -1
	}

	report.Events = r.writeStatus(&status, written)
	r.writeConditions(ended, status, written)

	drift, events := r.writeDrifted(written)
	report.Drifted = drift
	report.Events = append(report.Events, events...)

	r.withdraw(result, written)

	// A problem of the change says nothing about what is installed.
	if result.Condition == v1alpha2.ProviderInstalledCondition && r.hasInstalled() {
		result.Condition = ""
	}

	result = r.retryInputs(result, written)
	overdue := r.finish(&result, written)
	report.Retry = retry(result)
	report.After = r.requeue(result, written)

	stalled := overdue || result.Outcome == Stalled

	if report.Told = r.memory.told; ended.Attempt != 0 {
		report.Told = attempt{ended.Attempt, ended.Failed.Outcome == Stalled}
		report.Events = append(report.Events, failedEvent(r.memory.told, report.Told, ended.Failed)...)
	} else {
		report.Events = append(report.Events, readyEvent(before, written.list, result, stalled)...)
	}

	status.Conditions = written.list
	report.Status = status

	return report
}

// withdraw removes conditions about a change that was refused, once it is no longer asked for.
func (r *run) withdraw(result Result, written *conditions) {
	if result.Outcome != Ready && r.change.release.State.State != state.InSync {
		return
	}

	for _, name := range []string{v1alpha2.PreflightCheckCondition, v1alpha2.CRDsSafeCondition} {
		if written.get(name).Status == metav1.ConditionFalse && result.Condition != name {
			written.remove(name)
		}
	}
}

func retry(result Result) string {
	if result.Outcome != Retrying {
		return ""
	}

	return object.Printable(result.text())
}

// finish writes how the reconcile ended. A wait that takes longer than an installation may is overdue: it
// continues, but a user must know.
func (r *run) finish(result *Result, written *conditions) (overdue bool) {
	if !result.Limited {
		written.end(*result, false)
		return false
	}

	since := written.waitingSince(result.Reason)
	end := since.Add(r.policy.Timeout)
	overdue = written.now.After(end)

	switch {
	case overdue:
		*result = result.overdue(r.policy.Timeout)
	case result.Outcome == Waiting && (result.At.IsZero() || result.At.After(end)):
		result.At = end.Add(time.Second) // conditions have times in whole seconds
	}

	written.end(*result, overdue)
	written.keepWaitingSince(since)

	return overdue
}

// requeue returns when the resource is requeued.
func (r *run) requeue(result Result, written *conditions) time.Duration {
	ready := written.get(v1alpha2.ReadyCondition)
	after := time.Duration(0)

	switch result.Outcome {
	case Retrying:
	case Stalled:
		after = retryAfter(result, ready, written.now)
	default:
		after = until(result.At, written.now)
	}

	if r.target == nil || !r.target.Remote {
		return after
	}

	next := r.nextLook(result, written.now.Sub(ready.LastTransitionTime.Time))
	if after > 0 {
		return min(after, next)
	}

	return next
}

// nextLook returns when a remote cluster is looked at again: nothing there wakes a resource. While something is in
// progress, that is sooner, and less and less often: age is that of the condition Ready.
func (r *run) nextLook(result Result, age time.Duration) time.Duration {
	if result.Outcome != Waiting {
		return r.RemoteInterval
	}

	const slowing = 10

	return min(max(age/slowing, time.Second), r.RemoteInterval)
}

// until returns the time until at, at least a millisecond; zero for the zero time.
func until(at, now time.Time) time.Duration {
	if at.IsZero() {
		return 0
	}

	return max(at.Sub(now), time.Millisecond)
}

// retryAfter returns the time until a stalled resource is looked at again: until the known time, or as
// long as the condition has existed, within bounds.
func retryAfter(result Result, condition metav1.Condition, now time.Time) time.Duration {
	if !result.At.IsZero() {
		return max(result.At.Sub(now), time.Second)
	}

	return min(max(now.Sub(condition.LastTransitionTime.Time), MinRetry), MaxRetry)
}

// retryInputs requeues a resource that is ready while inputs cannot be used: not every input is watched.
func (r *run) retryInputs(result Result, written *conditions) Result {
	problem := r.change.problem
	if result.Outcome != Ready || !problem.Ends() {
		return result
	}

	at := written.now.Add(retryAfter(problem, written.get(v1alpha2.InputsUnavailableCondition), written.now))
	if result.At.IsZero() || at.Before(result.At) {
		result.At = at
	}

	return result
}

// writeStatus writes what was found out about the release and the source.
func (r *run) writeStatus(status *v1alpha2.ProviderStatus, written *conditions) []Event {
	// What has begun without a revision is over.
	status.History = slices.DeleteFunc(status.History, func(entry v1alpha2.ReleaseRevision) bool {
		return entry.Status.Pending() && entry.Digest == ""
	})

	if r.installed.works() && r.installed.Newest.Confirmed() {
		status.InstalledVersion = new(r.installed.version())
	}

	if r.offersKnown {
		status.AvailableUpgrades = r.offered
	}

	if r.done.uninstalled {
		status.Contract = nil
		status.Release = nil
		status.Objects = nil
		status.History = nil
		status.Chart = nil

		return nil
	}

	status.Objects = object.Inventory(r.inventory())

	if r.change.release.Decision.HoldsUninstalled(r.installed.History) {
		r.forgetInstalled(status, written)
		return nil
	}

	// Otherwise the next reconcile, for which the spec has not changed, would respect that it was uninstalled.
	if r.installsAgain() {
		status.Release = nil
	}

	if len(r.installed.History.Revisions) == 0 || r.installed.Record == nil {
		return nil
	}

	// The status of a second resource must not say that it has installed the provider, whatever Secrets
	// are in its namespace.
	if status.Release == nil && !r.identified {
		return nil
	}

	status.Release = &v1alpha2.ReleaseStatus{
		Name:       r.installed.History.Release.Name,
		Namespace:  r.installed.History.Release.Namespace,
		ClusterUID: string(r.self.Cluster),
		Revision:   r.installed.Newest.Number,
		Status:     r.installed.Newest.Status,
	}
	status.History = r.history(status)

	if r.installed.Newest.Confirmed() {
		status.Contract = nil

		if r.installed.contract() != "" {
			status.Contract = new(r.installed.contract())
		}
	}

	return writeAutomatic(status, offers.LastUpgrade(
		status.AutomaticUpgrade, r.installed.History, r.installed.description()))
}

// writeAutomatic writes the last automatic upgrade; nil for none.
func writeAutomatic(status *v1alpha2.ProviderStatus, last *v1alpha2.AutomaticUpgrade) []Event {
	shown, before := v1alpha2.AutomaticUpgradeStatus{}, v1alpha2.AutomaticUpgrade{}
	if status.AutomaticUpgrade != nil {
		shown = *status.AutomaticUpgrade
	}

	if shown.Last != nil {
		before = *shown.Last
	}

	shown.Last = last
	status.AutomaticUpgrade = nil

	if shown != (v1alpha2.AutomaticUpgradeStatus{}) {
		status.AutomaticUpgrade = &shown
	}

	if last == nil || last.Message == "" || last.Revision == before.Revision && before.Message != "" {
		return nil
	}

	return warn(v1alpha2.AutomaticUpgradeFailedReason, "Upgrade", fmt.Sprintf(
		"%s failed, given up until a newer version exists: %s; to try it again, change the annotation %s",
		last.Version, last.Message, v1alpha2.ReconcileRequestAnnotation))
}

// hasInstalled reports whether a revision is deployed, as far as is known.
func (r *run) hasInstalled() bool {
	if !r.installed.observed {
		known := v1alpha2.FindCondition(r.provider.GetConditions(), v1alpha2.ProviderInstalledCondition)
		return known.Status == metav1.ConditionTrue
	}

	return r.installed.deployed()
}

// installsAgain reports whether a release that does not exist is about to be installed, as soon as nothing prevents it.
func (r *run) installsAgain() bool {
	return r.installed.isGone() && r.applies() && r.change.release.State.State == state.Absent
}

// forgetInstalled removes what was true while the release was installed. That it existed remains known.
func (r *run) forgetInstalled(status *v1alpha2.ProviderStatus, written *conditions) {
	status.InstalledVersion = nil
	status.Contract = nil
	status.History = r.history(status)

	if status.Release != nil {
		status.Release.Status = v1alpha2.RevisionUninstalled
	}

	written.remove(ofInstalled...)
}

// announcedItems is how many entries may be added to the history before it is written again: a reconcile creates hardly
// more revisions than an upgrade and the rollback that follows.
const announcedItems = 5

// history returns what `helm history` shows, newest first, after a revision that was entered and may not exist. The
// digests of revisions are never taken from storage: that of the newest one is entered once it is confirmed, the others
// were before.
func (r *run) history(status *v1alpha2.ProviderStatus) []v1alpha2.ReleaseRevision {
	revisions := r.installed.History.Select(v1alpha2.HistoryMaxItems - announcedItems)
	shown := make([]v1alpha2.ReleaseRevision, 0, len(revisions)+1)

	for _, entry := range status.History {
		if entry.Status.Pending() && (len(revisions) == 0 || entry.Number > revisions[0].Number) {
			shown = append(shown, entry)
		}
	}

	for i, revision := range revisions {
		entered := state.Entry(status, revision.Number)
		read := i > 0 || r.installed.Record != nil

		switch {
		case revision.Confirmed() && read:
			shown = append(shown, revision.ReleaseRevision)
		case i == 0 && entered.Digest != "":
			shown = append(shown, entered)
		default:
			shown = append(shown, v1alpha2.ReleaseRevision{
				Number: revision.Number, Status: revision.Status, Time: revision.Time,
			})
		}
	}

	return shown
}

// unlessCanceled returns how a run ended. One that was canceled, because the operator stops, has found out nothing that
// a user should read: what it did not get was not refused.
func unlessCanceled(ctx context.Context, ended Summary) Summary {
	if errors.Is(ctx.Err(), context.Canceled) {
		return Summary{Result: Result{Outcome: Deferred}}
	}

	return ended
}

// end reports how a run ended, and returns when the resource is requeued.
func (r *run) end(ended Summary) (ctrl.Result, error) {
	if ended.Outcome == Deferred {
		r.status.discard(r.provider)
		return ctrl.Result{RequeueAfter: max(time.Until(ended.At), time.Millisecond)}, nil
	}

	made := r.report(ended, time.Now())
	r.remember(ended.Outcome)
	r.memory.told = made.Told
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

// endPanicked reports that a panic ended the run.
func (r *run) endPanicked() {
	r.status.discard(r.provider)

	made := r.reportPanic(time.Now())
	*r.provider.GetStatus() = made.Status
	r.emit(r.provider, made.Events)
}

// reportPanic returns what is known of a run that a panic ended. What it has computed may be half of something, so only
// the conditions change. The panic itself may quote a Secret, so it is only in the log.
func (r *run) reportPanic(now time.Time) Report {
	status := *r.provider.GetStatus().DeepCopy()
	written := &conditions{list: status.Conditions, generation: r.provider.GetGeneration(), now: now}
	before := slices.Clone(written.list)

	result := message{
		runs:   lastKnown(status),
		causes: []string{"a bug in Capstan ended this reconcile, which is tried again, later each time"},
		remedy: fmt.Sprintf("report it to Capstan's developers, with %s %s and what the operator's log has of it after "+
			"\"Observed a panic\"", r.provider.ProviderType(), client.ObjectKeyFromObject(r.provider)),
	}.of(Result{Outcome: Retrying, Reason: v1alpha2.InternalErrorReason, Limited: true})

	overdue := r.finish(&result, written)
	status.Conditions = written.list

	return Report{Status: status, Events: readyEvent(before, written.list, result, overdue)}
}

// remember keeps what the next reconcile needs to continue a change or a search, and nothing of one that was complete.
func (r *run) remember(ended Outcome) {
	r.memory.unsettled = 0

	if ended == Ready {
		r.memory.planned = nil
	}

	switch {
	case r.lost():
		r.memory.unsettled = r.provider.GetGeneration()
	case r.searched:
		r.memory.search = nil
	}
}

// emit emits events about an object.
func (r *Reconciler) emit(regarding runtime.Object, all []Event) {
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
