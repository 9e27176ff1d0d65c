package preflight

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/ranges"
)

// Standing is the state of a provider, according to its resource, that the providers depend on which wait for it, or
// which it waits for. It is read from what its last reconcile has written into the status, and from the spec.
type Standing struct {
	// Deleted is set if the resource is being deleted.
	Deleted bool
	// Installed is set once the installation of the provider has begun, successfully or not, until it is uninstalled.
	Installed bool
	// Contract is that of what is installed; empty for none.
	Contract string
	// Ready is set if the provider is what the resource asks for, and healthy.
	Ready bool
	// Paused is set if its Deployments are known to be scaled down.
	Paused bool
	// Changing is set if the installed provider is going to run another version that its resource asks for, so that
	// others wait for it: the change has not begun, or the new version is not healthy yet. It is not once the change has
	// failed, or waits for a user or for the contracts of other providers.
	Changing bool
	// MayReturn is set if the newest revision, or one that is about to be created, has another version than the one that
	// was healthy last, to which the provider may have to return.
	MayReturn bool
	// Keeps is set if the provider runs the version that was healthy last although its resource asks for another one: the
	// change cannot begin yet, or has failed and was rolled back.
	Keeps bool
	// WaitsForCore is set if the provider waits for core to become ready, or to be installed.
	WaitsForCore bool
}

// StandingOf returns the standing of a provider.
func StandingOf(p v1alpha2.Provider) Standing {
	status := p.GetStatus()
	existing := existingOf(status)

	s := Standing{
		Deleted:      !p.GetDeletionTimestamp().IsZero(),
		Installed:    status.Release != nil || newestOf(status).Status.Pending(),
		Ready:        isReady(status),
		Paused:       holds(status, v1alpha2.PausedCondition),
		WaitsForCore: reasonOf(status, v1alpha2.PreflightCheckCondition) == v1alpha2.WaitingForCoreProviderReadyReason,
	}

	if status.Contract != nil {
		s.Contract = *status.Contract
	}

	if healthy := status.InstalledVersion; healthy != nil {
		differs := !ranges.IsSame(wantedVersion(p), *healthy)

		s.MayReturn = existing.Version != "" && newestVersion(p) != *healthy
		s.Keeps = differs && existing.Version == *healthy && existing.Status == v1alpha2.RevisionDeployed
		s.Changing = differs && s.Installed && !s.Deleted && !p.GetSpec().Suspend && !returns(p) && s.mayChange(p)
	}

	return s
}

// mayChange reports whether the change to another version has not begun, or may still succeed.
func (s Standing) mayChange(p v1alpha2.Provider) bool {
	status := p.GetStatus()

	switch {
	case p.GetGeneration() != status.ObservedGeneration && status.ObservedGeneration > 0: // otherwise it was lost
		return true
	case s.Ready, isStalled(status):
		return false
	}

	upgraded := v1alpha2.FindCondition(status.Conditions, v1alpha2.ProviderUpgradedCondition)
	failed := upgraded.Status == metav1.ConditionFalse && upgraded.ObservedGeneration == p.GetGeneration()

	return !failed && reasonOf(status, v1alpha2.ReadyCondition) != v1alpha2.CAPIVersionIncompatibilityReason
}

// returns reports whether the resource asks for an earlier revision.
func returns(p v1alpha2.Provider) bool {
	release := p.GetSpec().Release
	return release != nil && release.RollbackTo != nil
}

// newestVersion returns the version of the newest revision of a provider's release, or of one that is about to be
// created; empty if there is none.
func newestVersion(p v1alpha2.Provider) string {
	status := p.GetStatus()

	// Until a rollback is complete, what it replaces still runs.
	newest := newestOf(status)
	if newest.Status == v1alpha2.RevisionPendingRollback {
		return existingOf(status).Version
	}

	return newest.Version
}

// wantedVersion returns the version that a resource asks for; empty if it has to be chosen from several.
func wantedVersion(p v1alpha2.Provider) string {
	return ranges.Exact(p.GetSpec().Version, p.GetStatus().DesiredVersion)
}

func newestOf(status *v1alpha2.ProviderStatus) v1alpha2.ReleaseRevision {
	if len(status.History) == 0 {
		return v1alpha2.ReleaseRevision{}
	}

	return status.History[0]
}

// existingOf returns the newest revision that was created for certain.
func existingOf(status *v1alpha2.ProviderStatus) v1alpha2.ReleaseRevision {
	for _, entry := range status.History {
		if !entry.Status.Pending() {
			return entry
		}
	}

	return v1alpha2.ReleaseRevision{}
}

// holds reports whether a condition of a resource is True.
func holds(status *v1alpha2.ProviderStatus, name string) bool {
	return v1alpha2.FindCondition(status.Conditions, name).Status == metav1.ConditionTrue
}

func reasonOf(status *v1alpha2.ProviderStatus, name string) string {
	return v1alpha2.FindCondition(status.Conditions, name).Reason
}

func isReady(status *v1alpha2.ProviderStatus) bool {
	return holds(status, v1alpha2.ReadyCondition) && !isReconciling(status) && !isStalled(status)
}

func isReconciling(status *v1alpha2.ProviderStatus) bool {
	return holds(status, v1alpha2.ReconcilingCondition)
}

func isStalled(status *v1alpha2.ProviderStatus) bool {
	return holds(status, v1alpha2.StalledCondition) && !isReconciling(status)
}
