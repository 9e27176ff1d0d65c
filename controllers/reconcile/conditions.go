package reconcile

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/autoupgrade"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// end writes the status and the conditions of a run, and returns when the resource comes back.
func (r *run) end(result Result) (ctrl.Result, error) {
	r.provider.GetStatus().ObservedGeneration = r.provider.GetGeneration()
	r.writeStatus()
	r.writeConditions()

	// A change of CRDs that was refused is no longer asked for.
	if result.Outcome == Ready && conditions.IsFalse(r.provider, v1alpha2.CRDsSafeCondition) {
		conditions.Delete(r.provider, v1alpha2.CRDsSafeCondition)
	}

	// A problem of the change says nothing about what is installed.
	if result.Condition == installFailed && r.hasInstalled() {
		result.Condition = ""
	}

	result = r.limit(r.retryInputs(result))
	back, err := writeResult(r.provider, result)

	return r.poll(result, back, time.Now()), err
}

// writeStatus writes what was found out about the release into the status.
func (r *run) writeStatus() {
	status := r.provider.GetStatus()

	if r.uninstalled {
		status.Contract = nil
		status.Release = nil
		status.Installing = false
		status.History = nil
		status.Chart = nil

		return
	}

	if r.isUninstalledByOthers() {
		r.forgetInstalled()
		return
	}

	history, revision := r.installed.history, r.installed.revision
	if len(history.Revisions) == 0 || r.installed.record == nil {
		return
	}

	// The status of a second resource must not say that it has installed the provider, whatever Secrets
	// are in its namespace.
	if status.Release == nil && !r.identified {
		return
	}

	status.Installing = false
	status.Release = &v1alpha2.ReleaseStatus{
		Name:       history.Release.Name,
		Namespace:  history.Release.Namespace,
		ClusterUID: string(r.self.Cluster),
		Revision:   int64(revision.Number),
		Status:     string(revision.Status),
		Kinds:      r.releaseKinds(),
	}
	status.History = historyStatus(history)
	status.Contract = nil

	if contract := r.installed.record.Contract; contract != "" {
		status.Contract = &contract
	}

	r.warn(r.provider, v1alpha2.AutomaticUpgradeFailedReason, "Upgrade", autoupgrade.Report(r.provider, r.forUpgrade())...)
}

// isUninstalledByOthers reports whether another program uninstalled the release, which is respected.
func (r *run) isUninstalledByOthers() bool {
	return r.decision.Action == state.Hold &&
		(len(r.installed.history.Revisions) == 0 || r.installed.revision.Status == state.StatusUninstalled)
}

// forgetInstalled removes from the status what was true while the release was installed. That it existed
// remains known.
func (r *run) forgetInstalled() {
	status := r.provider.GetStatus()

	status.InstalledVersion = nil
	status.Contract = nil
	status.History = historyStatus(r.installed.history)

	if status.Release != nil {
		status.Release.Status = string(state.StatusUninstalled)
	}

	for _, condition := range []string{
		v1alpha2.ProviderUpgradedCondition,
		v1alpha2.PausedCondition, v1alpha2.DriftedCondition,
		v1alpha2.SourceChangedCondition,
	} {
		conditions.Delete(r.provider, condition)
	}
}

// historyStatus returns what `helm history` shows, newest first.
func historyStatus(history state.History) []v1alpha2.ReleaseRevision {
	revisions := history.Revisions[:min(len(history.Revisions), v1alpha2.HistoryMaxItems)]
	entries := make([]v1alpha2.ReleaseRevision, 0, len(revisions))

	for _, revision := range revisions {
		entries = append(entries, v1alpha2.ReleaseRevision{
			Revision:    int64(revision.Number),
			Version:     revision.Version,
			ChartDigest: revision.ChartDigest,
			Adopted:     int64(revision.Adopted),
			Status:      string(revision.Status),
			Time:        metav1.NewTime(revision.Created),
		})
	}

	return entries
}

// writeConditions writes the conditions that do not depend on how the run ended.
func (r *run) writeConditions() {
	if r.passed {
		conditions.MarkTrue(r.provider, v1alpha2.PreflightCheckCondition, v1alpha2.PreflightChecksPassedReason,
			"All preflight checks passed")
	}

	if r.crdReport != nil {
		conditions.MarkTrue(r.provider, v1alpha2.CRDsSafeCondition, v1alpha2.CRDsCheckedReason, "%s", r.crdReport.Message())
	}

	r.writeInstalled()
	r.writeUpgraded()
	r.writePaused()
	r.writeDrifted()
	r.writeMigrated()
	r.writeSourceChanged()
	r.writePending()
	r.writeInputsUnavailable()
}

// writeInstalledVersion writes the version whose objects are healthy into the status.
func (r *run) writeInstalledVersion() {
	if r.installed.healthy() {
		version := r.installed.record.AppVersion
		r.provider.GetStatus().InstalledVersion = &version
	}
}

// writeInstalled writes what is installed.
func (r *run) writeInstalled() {
	if r.uninstalled {
		conditions.MarkFalse(r.provider, v1alpha2.ProviderInstalledCondition, v1alpha2.UninstalledReason,
			"Release %s is uninstalled", v1alpha2.ReleaseName(r.provider))

		return
	}

	if !r.deployed() {
		return
	}

	note := ""
	if adopted := r.installed.revision.Adopted; adopted > 0 {
		note = fmt.Sprintf("; it adopted %d existing objects", adopted)
	}

	if r.decision.Action == state.Hold {
		note = "; another program made it (" + r.installed.record.Description + ")"
	}

	conditions.MarkTrue(r.provider, v1alpha2.ProviderInstalledCondition, v1alpha2.ProviderInstalledReason,
		"Release %s, revision %d, holds %s%s",
		r.installed.history.Release.Name, r.installed.revision.Number, r.installed.record.AppVersion, note)
}

// deployed reports whether the newest revision is deployed.
func (r *run) deployed() bool {
	return r.installed.record != nil && r.installed.revision.Status == state.StatusDeployed
}

// hasInstalled reports whether a revision is deployed, as far as is known.
func (r *run) hasInstalled() bool {
	if !r.observed {
		return conditions.IsTrue(r.provider, v1alpha2.ProviderInstalledCondition)
	}

	return r.deployed()
}

// writeUpgraded writes how the last upgrade ended.
func (r *run) writeUpgraded() {
	if r.provider.GetStatus().InstalledVersion == nil {
		return
	}

	switch {
	case r.upgradeFailed != "":
		conditions.MarkFalse(r.provider, v1alpha2.ProviderUpgradedCondition, v1alpha2.ComponentsUpgradeErrorReason,
			"%s", r.upgradeFailed)
	case r.state.State == state.InSync && r.installed.revision.Number > 1:
		conditions.MarkTrue(r.provider, v1alpha2.ProviderUpgradedCondition, v1alpha2.ProviderUpgradedReason,
			"Revision %d holds %s", r.installed.revision.Number, r.installed.record.AppVersion)
	}
}

// paused reports whether the newest revision runs no managers.
func (r *run) paused() bool { return r.installed.revision.Paused || r.installed.record.Paused() }

// writePaused writes whether the newest revision has taken the replicas away, whatever the spec says. One
// that failed may have done so in part only.
func (r *run) writePaused() {
	switch {
	case r.installed.record == nil:
	case !r.paused():
		conditions.Delete(r.provider, v1alpha2.PausedCondition)
	case r.deployed():
		conditions.MarkTrue(r.provider, v1alpha2.PausedCondition, v1alpha2.PausedReason,
			"The Deployments have no replicas; the annotation %s holds their usual number", v1alpha2.PausedReplicasAnnotation)
	}
}

// writeDrifted writes which objects differ from the release, and which CRDs from its chart, and announces
// what is new.
func (r *run) writeDrifted() {
	if r.deviations == nil {
		return
	}

	left := leftDeviations(slices.Concat(*r.deviations, r.crdDeviations))
	if len(left) == 0 {
		conditions.Delete(r.provider, v1alpha2.DriftedCondition)
		return
	}

	reason, message := driftReason(driftPolicy(r.provider.GetSpec())), summarizeDrift(left)
	if conditions.GetMessage(r.provider, v1alpha2.DriftedCondition) != message {
		r.Metrics.CountDriftDetected(r.provider, len(left))
		r.warn(r.provider, reason, "Compare", message)
	}

	conditions.MarkTrue(r.provider, v1alpha2.DriftedCondition, reason, "%s", message)
}

// writeMigrated writes how far the objects are rewritten in the storage version.
func (r *run) writeMigrated() {
	switch {
	case r.migration == nil:
	case r.migration.done:
		conditions.MarkTrue(r.provider, v1alpha2.CRDsMigratedCondition, r.migration.reason, "%s", r.migration.message)
	default:
		conditions.MarkFalse(r.provider, v1alpha2.CRDsMigratedCondition, r.migration.reason, "%s", r.migration.message)
	}
}

// writeSourceChanged writes whether the tag of the chart in use has moved.
func (r *run) writeSourceChanged() {
	switch {
	case !r.movedChecked:
	case r.moved == nil:
		conditions.Delete(r.provider, v1alpha2.SourceChangedCondition)
	default:
		conditions.MarkTrue(r.provider, v1alpha2.SourceChangedCondition, v1alpha2.TagMovedReason, "%s", r.moved)
	}
}

// writePending writes what has changed and takes effect with the next request.
func (r *run) writePending() {
	switch {
	case len(r.pin.Differences) > 0 && r.keeps() && r.decision.Action != state.Hold:
		reason := v1alpha2.EnvironmentChangedReason
		if r.pin.Differences[0].IsInput() {
			reason = v1alpha2.InputsChangedReason
		}

		conditions.MarkTrue(r.provider, v1alpha2.ChangesPendingCondition, reason, "%s", r.pendingMessage())
	case r.decision.Action != "" && r.inputsProblem == nil:
		conditions.Delete(r.provider, v1alpha2.ChangesPendingCondition)
	}
}

// writeInputsUnavailable writes why inputs cannot be used that are not needed for what is installed.
func (r *run) writeInputsUnavailable() {
	switch {
	case r.inputsProblem != nil:
		conditions.MarkTrue(r.provider, v1alpha2.InputsUnavailableCondition, r.inputsProblem.Reason,
			"%s; what is installed stays as it is", r.inputsProblem.Message)
	case r.planned:
		conditions.Delete(r.provider, v1alpha2.InputsUnavailableCondition)
	}
}
