// Package report turns what a reconcile has found out and done into what people and programs read: the status of
// the resource with its conditions, events, and when to look again. It is the only author of these.
//
// Its functions are pure: they read values and return values, and know the time only from them.
package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/inventory"
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
}

// Of returns the report of a reconcile.
func Of(in Input, ended Summary) Report {
	result := ended.Result
	status := *in.Provider.Status.DeepCopy()
	written := &conditions{list: status.Conditions, generation: in.Provider.Generation, now: in.Now}
	before := slices.Clone(written.list)
	report := Report{}

	status.ObservedGeneration = in.Provider.Generation
	report.Events = writeStatus(in, &status, written)
	writeConditions(in, ended, status, written)

	drift, events := writeDrifted(in, written)
	report.Drifted = drift
	report.Events = append(report.Events, events...)

	withdraw(in, result, written)

	// A problem of the change says nothing about what is installed.
	if result.Condition == v1alpha2.ProviderInstalledCondition && in.hasInstalled() {
		result.Condition = ""
	}

	result = retryInputs(in, result, written)
	overdue := finish(in, &result, written)
	report.Retry = retry(result)
	report.After = requeue(in, result, written)

	stalled := overdue || result.Outcome == Stalled

	if ended.Failed != "" {
		report.Events = append(report.Events, failedEvent(before, ended.Failed, result)...)
	} else {
		report.Events = append(report.Events, readyEvent(before, written.list, result, stalled)...)
	}

	status.Conditions = written.list
	report.Status = status

	return report
}

// withdraw removes conditions about a change that was refused, once it is no longer asked for.
func withdraw(in Input, result Result, written *conditions) {
	if result.Outcome != Ready && in.Change.State.State != state.InSync {
		return
	}

	for _, name := range []string{v1alpha2.PreflightCheckCondition, v1alpha2.CRDsSafeCondition} {
		if written.get(name).Status == metav1.ConditionFalse && result.Condition != name {
			written.remove(name)
		}
	}
}

// overdue returns the result of a wait that takes longer than it may.
func (r Result) overdue(timeout time.Duration) Result {
	late := fmt.Sprintf("this takes longer than spec.release.timeout (%s)", timeout)
	rest, exists := strings.CutPrefix(r.Message, r.Verdict)

	if r.Verdict == "" || !exists {
		return r.also(late)
	}

	r.Verdict = clauses(r.Verdict, late)
	r.Message = r.Verdict + rest

	return r
}

func retry(result Result) string {
	if result.Outcome != Retrying {
		return ""
	}

	return object.Printable(result.Message)
}

// finish writes how the reconcile ended. A wait that takes longer than an installation may is overdue: it
// continues, but a user must know.
func finish(in Input, result *Result, written *conditions) (overdue bool) {
	if !result.Limited {
		written.end(*result, false)
		return false
	}

	since := written.waitingSince(result.Reason)
	end := since.Add(in.Provider.Timeout)
	overdue = in.Now.After(end)

	switch {
	case overdue:
		*result = result.overdue(in.Provider.Timeout)
	case result.Outcome == Waiting && (result.At.IsZero() || result.At.After(end)):
		result.At = end.Add(time.Second) // conditions have times in whole seconds
	}

	written.end(*result, overdue)
	written.keepWaitingSince(since)

	return overdue
}

// requeue returns when the resource is requeued.
func requeue(in Input, result Result, written *conditions) time.Duration {
	ready := written.get(v1alpha2.ReadyCondition)
	after := time.Duration(0)

	switch result.Outcome {
	case Retrying:
	case Stalled:
		after = retryAfter(result, ready, in.Now)
	default:
		after = until(result.At, in.Now)
	}

	if in.RemoteInterval == 0 {
		return after
	}

	next := nextLook(in, result, ready)
	if after > 0 {
		return min(after, next)
	}

	return next
}

// nextLook returns when a remote cluster is looked at again: nothing there wakes a resource. While something is in
// progress, that is sooner, and less and less often.
func nextLook(in Input, result Result, ready metav1.Condition) time.Duration {
	if result.Outcome != Waiting {
		return in.RemoteInterval
	}

	const slowing = 10

	age := in.Now.Sub(ready.LastTransitionTime.Time)

	return min(max(age/slowing, time.Second), in.RemoteInterval)
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
func retryInputs(in Input, result Result, written *conditions) Result {
	problem := in.Change.InputsProblem
	if result.Outcome != Ready || !problem.Ends() {
		return result
	}

	at := in.Now.Add(retryAfter(problem, written.get(v1alpha2.InputsUnavailableCondition), in.Now))
	if result.At.IsZero() || at.Before(result.At) {
		result.At = at
	}

	return result
}

// writeStatus writes what was found out about the release and the source.
func writeStatus(in Input, status *v1alpha2.ProviderStatus, written *conditions) []Event {
	// What has begun without a revision is over.
	status.History = slices.DeleteFunc(status.History, func(entry v1alpha2.ReleaseRevision) bool {
		return entry.Status.Pending() && entry.Digest == ""
	})

	if in.Installed.Healthy() && in.Installed.Revision.Confirmed() {
		status.InstalledVersion = new(in.Installed.Record.AppVersion)
	}

	if in.Source.Answered {
		status.AvailableUpgrades = in.Source.Upgrades
	}

	if in.Uninstalled {
		status.Contract = nil
		status.Release = nil
		status.Inventory = nil
		status.History = nil
		status.Chart = nil

		return nil
	}

	status.Inventory = inventory.Entries(in.Installed.Inventory)

	if in.isUninstalledByOthers() {
		forgetInstalled(in, status, written)
		return nil
	}

	// Otherwise the next reconcile, for which the spec has not changed, would respect that it was uninstalled.
	if in.installsAgain() {
		status.Release = nil
	}

	installed := in.Installed
	if len(installed.History.Revisions) == 0 || !installed.Record.Readable {
		return nil
	}

	// The status of a second resource must not say that it has installed the provider, whatever Secrets
	// are in its namespace.
	if status.Release == nil && !installed.Identified {
		return nil
	}

	status.Release = &v1alpha2.ReleaseStatus{
		Name:       installed.History.Release.Name,
		Namespace:  installed.History.Release.Namespace,
		ClusterUID: installed.ClusterUID,
		Revision:   installed.Revision.Number,
		Status:     installed.Revision.Status,
	}
	status.History = history(installed, status.History)

	if installed.Revision.Confirmed() {
		status.Contract = nil

		if installed.Record.Contract != "" {
			status.Contract = new(installed.Record.Contract)
		}
	}

	return writeAutomatic(in.Automatic, status)
}

// writeAutomatic writes the last automatic upgrade.
func writeAutomatic(automatic Automatic, status *v1alpha2.ProviderStatus) []Event {
	shown, before := v1alpha2.AutomaticUpgradeStatus{}, v1alpha2.AutomaticUpgrade{}
	if status.AutomaticUpgrade != nil {
		shown = *status.AutomaticUpgrade
	}

	if shown.Last != nil {
		before = *shown.Last
	}

	last := automatic.Last
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

// forgetInstalled removes what was true while the release was installed. That it existed remains known.
func forgetInstalled(in Input, status *v1alpha2.ProviderStatus, written *conditions) {
	status.InstalledVersion = nil
	status.Contract = nil
	status.History = history(in.Installed, status.History)

	if status.Release != nil {
		status.Release.Status = v1alpha2.RevisionUninstalled
	}

	written.remove(ofInstalled...)
}
