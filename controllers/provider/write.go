package provider

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// writeConditions writes the conditions that do not depend on how the reconcile ended, apart from Drifted.
func (r *run) writeConditions(ended Summary, status v1alpha2.ProviderStatus, written *conditions) {
	if r.change.passed {
		written.markTrue(v1alpha2.PreflightCheckCondition, v1alpha2.PreflightChecksPassedReason,
			"All preflight checks passed")
	}

	if checked := r.change.crds.checked; checked != "" {
		written.markTrue(v1alpha2.CRDsSafeCondition, v1alpha2.CRDsCheckedReason, "%s", checked)
	}

	r.writeInstalled(written)

	if status.InstalledVersion != nil {
		r.writeUpgraded(ended, written)
	}

	r.writePaused(written)
	r.writeTrusted(written)
	r.writeMigrated(written)
	r.writePending(written)
	r.writeInputsUnavailable(written)
}

// writeInstalled writes what is installed.
func (r *run) writeInstalled(written *conditions) {
	if r.done.uninstalled {
		written.markFalse(v1alpha2.ProviderInstalledCondition, v1alpha2.UninstalledReason,
			"Release %s is uninstalled", v1alpha2.ReleaseName(r.provider))

		return
	}

	if r.installed.isGone() {
		written.remove(ofInstalled...)
	}

	switch known := written.get(v1alpha2.ProviderInstalledCondition).Status == metav1.ConditionTrue; {
	case r.installed.isGone() && known:
		written.markFalse(v1alpha2.ProviderInstalledCondition, v1alpha2.UninstalledReason,
			"Release %s has no records any more", v1alpha2.ReleaseName(r.provider))

		return
	case !r.installed.deployed():
		return
	}

	note := ""
	if adopted := r.installed.Newest.Adopted; adopted > 0 {
		note = "; it adopted " + object.Count(adopted, "existing object")
	}

	if r.change.held() {
		note = "; another program made it (" + r.installed.description() + ")"
	}

	written.markTrue(v1alpha2.ProviderInstalledCondition, v1alpha2.ProviderInstalledReason,
		"Release %s has %s as revision %d%s",
		r.installed.History.Release.Name, r.installed.version(), r.installed.Newest.Number, note)
}

// ofInstalled are conditions that are about what is installed.
var ofInstalled = []string{
	v1alpha2.ProviderUpgradedCondition, v1alpha2.PausedCondition, v1alpha2.DriftedCondition,
	v1alpha2.WebhooksTrustedCondition,
}

// writeUpgraded writes how the last upgrade ended.
func (r *run) writeUpgraded(ended Summary, written *conditions) {
	switch {
	case ended.Attempt != 0:
		written.markFalse(v1alpha2.ProviderUpgradedCondition, v1alpha2.ComponentsUpgradeErrorReason,
			"%s", ended.Failed.headline())
	case r.change.held(), r.installed.awaitsHealth(),
		r.change.release.State.State == state.InSync && r.installed.Newest.Number == 1:
		written.remove(v1alpha2.ProviderUpgradedCondition) // it was about an earlier release, or revision
	case r.change.release.State.State == state.InSync:
		written.markTrue(v1alpha2.ProviderUpgradedCondition, v1alpha2.ProviderUpgradedReason,
			"Revision %d has %s", r.installed.Newest.Number, r.installed.version())
	}
}

// writePaused writes whether the newest revision has taken the replicas away, whatever the spec says. One
// that failed may have done so in part only, and another program may have scaled the Deployments up again: other
// providers rely on the condition.
func (r *run) writePaused(written *conditions) {
	switch {
	case r.installed.Record == nil:
	case !r.installed.paused(), r.installed.replicas.running:
		written.remove(v1alpha2.PausedCondition)
	case r.installed.deployed() && r.installed.health != nil:
		written.markTrue(v1alpha2.PausedCondition, v1alpha2.PausedReason,
			"The Deployments have no replicas; the annotation %s holds their usual number", v1alpha2.PausedReplicasAnnotation)
	}
}

// writeDrifted writes which objects differ from the release, and which CRDs from its chart. It returns how many
// these are if that is news.
func (r *run) writeDrifted(written *conditions) (drifted int, events []Event) {
	policy := driftPolicy(r.provider.GetSpec())
	compared := r.installed.deviations != nil

	var (
		left []string
		late string
	)

	switch {
	case r.installed.Record != nil && (policy == v1alpha2.DriftOff || !r.installed.isOwn()):
		compared = true // there is nothing to find
	case compared:
		left = leftDeviations(slices.Concat(*r.installed.deviations, r.crdDeviations))
		if r.installed.health != nil {
			late = r.installed.health.Late()
		}
	}

	switch {
	case r.installed.unconverted != nil:
		written.markUnknown(v1alpha2.DriftedCondition, v1alpha2.UnreadableObjectsReason, "%s",
			r.installed.unconverted.Message)

		return 0, nil
	case !compared:
		return 0, nil
	case len(left) == 0 && late != "":
		written.markUnknown(v1alpha2.DriftedCondition, v1alpha2.MissingPermissionsReason, "%s", late)
		return 0, nil
	case len(left) == 0:
		written.remove(v1alpha2.DriftedCondition)
		return 0, nil
	}

	reason, message := driftReason(policy), summarizeDrift(left)
	if written.get(v1alpha2.DriftedCondition).Message != object.Printable(message) {
		drifted = len(left)
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
func (r *run) writeMigrated(written *conditions) {
	switch found := r.migration; {
	case found == migration{}:
	case found.done:
		written.markTrue(v1alpha2.CRDsMigratedCondition, found.reason, "%s", found.message)
	default:
		written.markFalse(v1alpha2.CRDsMigratedCondition, found.reason, "%s", found.message)
	}
}

// writePending writes what has changed and takes effect with the next request.
func (r *run) writePending(written *conditions) {
	differences := r.change.release.Pin.Differences

	switch {
	case len(differences) > 0 && r.change.release.Keeps() && !r.change.held():
		reason := v1alpha2.EnvironmentChangedReason
		if differences[0].IsInput() {
			reason = v1alpha2.InputsChangedReason
		}

		written.markTrue(v1alpha2.ChangesPendingCondition, reason, "%s",
			clauses(r.pendingMessage(), r.remedy("to apply that")))
	case r.change.release.Decision.Action != "" && !r.change.problem.Ends():
		written.remove(v1alpha2.ChangesPendingCondition)
	}
}

// writeInputsUnavailable writes why inputs cannot be used that are not needed for what is installed.
func (r *run) writeInputsUnavailable(written *conditions) {
	switch problem := r.change.problem; {
	case problem.Ends():
		written.markTrue(v1alpha2.InputsUnavailableCondition, problem.Reason,
			"%s; what is installed stays as it is", problem.text())
	case r.change.begun:
		written.remove(v1alpha2.InputsUnavailableCondition)
	}
}
