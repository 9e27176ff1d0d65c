package report

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// writeConditions writes the conditions that do not depend on how the reconcile ended, apart from Drifted.
func writeConditions(in Input, ended Summary, status v1alpha2.ProviderStatus, written *conditions) {
	if in.Change.Passed {
		written.markTrue(v1alpha2.PreflightCheckCondition, v1alpha2.PreflightChecksPassedReason,
			"All preflight checks passed")
	}

	if checked := in.Change.CRDsChecked; checked != "" {
		written.markTrue(v1alpha2.CRDsSafeCondition, v1alpha2.CRDsCheckedReason, "%s", checked)
	}

	writeInstalled(in, written)

	if status.InstalledVersion != nil {
		writeUpgraded(in, ended, written)
	}

	writePaused(in.Installed, written)
	writeMigrated(in.Migration, written)
	writePending(in, written)
	writeInputsUnavailable(in.Change, written)
}

// writeInstalled writes what is installed.
func writeInstalled(in Input, written *conditions) {
	if in.Uninstalled {
		written.markFalse(v1alpha2.ProviderInstalledCondition, v1alpha2.UninstalledReason,
			"Release %s is uninstalled", in.Provider.ReleaseName)

		return
	}

	installed := in.Installed

	if installed.isGone() {
		written.remove(ofInstalled...)
	}

	switch known := written.get(v1alpha2.ProviderInstalledCondition).Status == metav1.ConditionTrue; {
	case installed.isGone() && known:
		written.markFalse(v1alpha2.ProviderInstalledCondition, v1alpha2.UninstalledReason,
			"Release %s has no records any more", in.Provider.ReleaseName)

		return
	case !installed.deployed():
		return
	}

	note := ""
	if adopted := installed.Revision.Adopted; adopted > 0 {
		note = "; it adopted " + object.Count(adopted, "existing object")
	}

	if in.Change.held() {
		note = "; another program made it (" + installed.Record.Description + ")"
	}

	written.markTrue(v1alpha2.ProviderInstalledCondition, v1alpha2.ProviderInstalledReason,
		"Release %s, revision %d, holds %s%s",
		installed.History.Release.Name, installed.Revision.Number, installed.Record.AppVersion, note)
}

// ofInstalled are conditions that are about what is installed.
var ofInstalled = []string{
	v1alpha2.ProviderUpgradedCondition, v1alpha2.PausedCondition, v1alpha2.DriftedCondition,
}

// writeUpgraded writes how the last upgrade ended.
func writeUpgraded(in Input, ended Summary, written *conditions) {
	installed := in.Installed

	switch {
	case ended.Failed != "":
		written.markFalse(v1alpha2.ProviderUpgradedCondition, v1alpha2.ComponentsUpgradeErrorReason, "%s", ended.Failed)
	case in.Change.held(), in.Change.State.State == state.InSync && installed.Revision.Number == 1:
		written.remove(v1alpha2.ProviderUpgradedCondition) // it was about an earlier release, or revision
	case in.Change.State.State == state.InSync:
		written.markTrue(v1alpha2.ProviderUpgradedCondition, v1alpha2.ProviderUpgradedReason,
			"Revision %d holds %s", installed.Revision.Number, installed.Record.AppVersion)
	}
}

// writePaused writes whether the newest revision has taken the replicas away, whatever the spec says. One
// that failed may have done so in part only, and another program may have scaled the Deployments up again: other
// providers rely on the condition.
func writePaused(installed Installed, written *conditions) {
	switch {
	case !installed.Record.Readable:
	case !installed.paused(), installed.Health.Running:
		written.remove(v1alpha2.PausedCondition)
	case installed.deployed() && installed.Health.Checked:
		written.markTrue(v1alpha2.PausedCondition, v1alpha2.PausedReason,
			"The Deployments have no replicas; the annotation %s holds their usual number", v1alpha2.PausedReplicasAnnotation)
	}
}

// writeDrifted writes which objects differ from the release, and which CRDs from its chart. It returns how many
// these are if that is news.
func writeDrifted(in Input, written *conditions) (drifted int, events []Event) {
	drift := in.Installed.Drift

	switch {
	case !drift.Compared:
		return 0, nil
	case len(drift.Left) == 0 && drift.Late != "":
		written.markUnknown(v1alpha2.DriftedCondition, v1alpha2.MissingPermissionsReason, "%s", drift.Late)
		return 0, nil
	case len(drift.Left) == 0:
		written.remove(v1alpha2.DriftedCondition)
		return 0, nil
	}

	reason, message := driftReason(in.Provider.Drift), summarizeDrift(drift.Left)
	if written.get(v1alpha2.DriftedCondition).Message != object.Printable(message) {
		drifted = len(drift.Left)
		events = warn(reason, "Compare", message)
	}

	written.markTrue(v1alpha2.DriftedCondition, reason, "%s", message)

	return drifted, events
}

// driftReason returns the reason for drift that is left.
func driftReason(policy v1alpha2.DriftPolicy) string {
	if policy == v1alpha2.DriftCorrect {
		return v1alpha2.DriftNotCorrectedReason
	}

	return v1alpha2.DriftDetectedReason
}

// summarizeDrift names the first of the deviations.
func summarizeDrift(left []string) string {
	const most = 5

	shown := left[:min(len(left), most)]

	return strings.Join(shown, "; ") + object.AndMore(len(left)-len(shown))
}

// writeMigrated writes how far the objects are rewritten in the storage version.
func writeMigrated(migration Migration, written *conditions) {
	switch {
	case migration == Migration{}:
	case migration.Done:
		written.markTrue(v1alpha2.CRDsMigratedCondition, migration.Reason, "%s", migration.Message)
	default:
		written.markFalse(v1alpha2.CRDsMigratedCondition, migration.Reason, "%s", migration.Message)
	}
}

// writePending writes what has changed and takes effect with the next request.
func writePending(in Input, written *conditions) {
	switch change := in.Change; {
	case change.Pending != "" && change.keeps() && !change.held():
		reason := v1alpha2.EnvironmentChangedReason
		if change.PendingInputs {
			reason = v1alpha2.InputsChangedReason
		}

		written.markTrue(v1alpha2.ChangesPendingCondition, reason, "%s", clauses(change.Pending, in.remedy("to apply that")))
	case change.Decision.Action != "" && !change.InputsProblem.Ends():
		written.remove(v1alpha2.ChangesPendingCondition)
	}
}

// writeInputsUnavailable writes why inputs cannot be used that are not needed for what is installed.
func writeInputsUnavailable(change Progress, written *conditions) {
	switch {
	case change.InputsProblem.Ends():
		written.markTrue(v1alpha2.InputsUnavailableCondition, change.InputsProblem.Reason,
			"%s; what is installed stays as it is", change.InputsProblem.Message)
	case change.Planned:
		written.remove(v1alpha2.InputsUnavailableCondition)
	}
}
