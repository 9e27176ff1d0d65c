package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HistoryMaxItems is the maximum number of entries in status.history.
const HistoryMaxItems = 100

// ProviderStatus is the observed state of a provider. All kinds share it.
type ProviderStatus struct {
	// observedGeneration is the generation of the spec that the status describes; -1 until there is a status.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions of the provider; Ready summarizes the others.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// contract is the Cluster API contract of the newest revision of the release, e.g. `v1beta2`.
	// +optional
	Contract *string `json:"contract,omitempty"`

	// installedVersion is the last version that was installed and became healthy, e.g. `v1.13.5`.
	// +optional
	InstalledVersion *string `json:"installedVersion,omitempty"`

	// desiredVersion is the exact version that `spec.version` was resolved to, e.g. `v1.13.5`.
	// +optional
	DesiredVersion string `json:"desiredVersion,omitempty"`

	// chart is the Helm chart of the desired version.
	// +optional
	Chart *ChartStatus `json:"chart,omitempty"`

	// release is the provider's Helm release.
	// +optional
	Release *ReleaseStatus `json:"release,omitempty"`

	// objects are those that the release has, or may have, as `namespace_name_group_kind_version`: before a revision is
	// applied, those of the revision are added, and afterwards those are removed that it has replaced. An object is
	// deleted only if it also bears the marks of the release.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2000
	// +kubebuilder:validation:items:MaxLength=964
	Objects []string `json:"objects,omitempty"`

	// history of the release, newest first: what `helm history` shows, and what the operator has to know of the revisions
	// that it has created. Each of these is entered before Helm's record of it is written.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	History []ReleaseRevision `json:"history,omitempty"`

	// availableUpgrades are newer versions that work with the contracts in use: the newest patch of the
	// installed minor version, and the newest version overall.
	// +optional
	// +listType=atomic
	AvailableUpgrades []AvailableUpgrade `json:"availableUpgrades,omitempty"`

	// automaticUpgrade is what `spec.upgradePolicy` has done and will do; absent if that is nothing.
	// +optional
	AutomaticUpgrade *AutomaticUpgradeStatus `json:"automaticUpgrade,omitempty"`

	// missingVariables are the variables without a default and without a value, sorted.
	// +optional
	// +listType=atomic
	MissingVariables []string `json:"missingVariables,omitempty"`

	// ignored are the parts of the spec that have no effect, with the reasons.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Ignored []string `json:"ignored,omitempty"`

	// orphanedCRDs are CustomResourceDefinitions that the desired version no longer includes; they and their
	// objects are kept.
	// +optional
	// +listType=atomic
	OrphanedCRDs []string `json:"orphanedCRDs,omitempty"`

	// lastHandledReconcileAt is the last value of the annotation `reconcile.fluxcd.io/requestedAt` that was
	// handled.
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`
}

// ChartStatus describes a chart and where it is stored.
type ChartStatus struct {
	// name of the chart, e.g. `infrastructure-aws`.
	// +optional
	Name string `json:"name,omitempty"`

	// version of the chart: the provider's version without its `v`, e.g. `2.11.1`.
	// +optional
	Version string `json:"version,omitempty"`

	// reference to the stored chart: `configmap://NAMESPACE/NAME`.
	// +optional
	Reference string `json:"reference,omitempty"`

	// digest of the chart's archive: `sha256:…`.
	// +optional
	Digest string `json:"digest,omitempty"`

	// source of the components or of the chart, with the digest if it is in a registry:
	// `oci://registry.example.com/capi/infrastructure-aws:v2.11.1@sha256:…`.
	// +optional
	Source string `json:"source,omitempty"`
}

// AvailableUpgrade is a version that the provider could be upgraded to.
type AvailableUpgrade struct {
	// version of the provider, e.g. `v1.13.6`.
	Version string `json:"version"`

	// contract is the Cluster API contract that the version implements, e.g. `v1beta2`.
	Contract string `json:"contract"`
}

// AutomaticUpgradeStatus describes automatic upgrades.
type AutomaticUpgradeStatus struct {
	// pending is the upgrade that follows; absent if there is no version that the policy allows.
	// +optional
	Pending *PendingUpgrade `json:"pending,omitempty"`

	// last is the newest automatic upgrade in the history of the release.
	// +optional
	Last *AutomaticUpgrade `json:"last,omitempty"`
}

// PendingUpgrade is an automatic upgrade that has not started.
type PendingUpgrade struct {
	// version that the provider will be upgraded to, e.g. `v1.13.6`.
	Version string `json:"version"`

	// message is what the upgrade waits for, or why it is blocked.
	// +optional
	Message string `json:"message,omitempty"`

	// notBefore is when the upgrade can start at the earliest, if that is known.
	// +optional
	NotBefore *metav1.Time `json:"notBefore,omitempty"`

	// blocked is true if the upgrade was tried, and a check prevents it, or it failed and no minor version is skipped.
	// +optional
	Blocked bool `json:"blocked,omitempty"`
}

// AutomaticUpgrade is an automatic upgrade that has started.
type AutomaticUpgrade struct {
	// version that the provider was upgraded to, e.g. `v1.13.6`.
	Version string `json:"version"`

	// revision of the release that the upgrade created.
	Revision int `json:"revision"`

	// time at which the revision was created.
	Time metav1.Time `json:"time"`

	// result is Progressing, Succeeded once the objects were healthy, or Failed.
	// +kubebuilder:validation:Enum=Progressing;Succeeded;Failed
	Result UpgradeResult `json:"result"`

	// message is why the upgrade failed.
	// +optional
	Message string `json:"message,omitempty"`
}

// UpgradeResult is the result of an automatic upgrade.
type UpgradeResult string

// The results of an automatic upgrade.
const (
	UpgradeProgressing UpgradeResult = "Progressing"
	UpgradeSucceeded   UpgradeResult = "Succeeded"
	UpgradeFailed      UpgradeResult = "Failed"
)

// RevisionRequest is what a user asked for: the resource as it was, and a reconcile on request. What changes between
// two requests, such as the operator's flags, is therefore not taken for a request.
type RevisionRequest struct {
	// uid of the resource.
	// +kubebuilder:validation:MaxLength=128
	UID string `json:"uid"`

	// generation of the resource.
	Generation int64 `json:"generation"`

	// requestedAt is the value of the annotation `reconcile.fluxcd.io/requestedAt`. One with over 63 characters, or
	// others than a label's value may have, is shortened, with a checksum of all of it.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	RequestedAt string `json:"requestedAt,omitempty"`

	// automaticUpgrade is the version of an automatic upgrade since the last change of the two.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	AutomaticUpgrade string `json:"automaticUpgrade,omitempty"`
}

// SameUser reports whether a user asked for the same in both requests, regardless of upgrades by the operator in
// between.
func (r RevisionRequest) SameUser(other RevisionRequest) bool {
	return r.SameSpec(other) && r.RequestedAt == other.RequestedAt
}

// SameSpec reports whether both requests are for the same spec of the same resource.
func (r RevisionRequest) SameSpec(other RevisionRequest) bool {
	return r.UID == other.UID && r.Generation == other.Generation
}

// ReleaseStatus is the last observed state of a Helm release.
type ReleaseStatus struct {
	// name of the release.
	// +optional
	Name string `json:"name,omitempty"`

	// namespace of the release.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// clusterUID is the UID of the namespace kube-system in the release's cluster; empty if the operator may
	// not read it.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	ClusterUID string `json:"clusterUID,omitempty"`

	// revision is the current revision.
	// +optional
	Revision int `json:"revision,omitempty"`

	// status of that revision as Helm reports it, e.g. `deployed` or `failed`.
	// +optional
	Status RevisionStatus `json:"status,omitempty"`
}

// ObjectsMaxItems is the maximum number of entries in status.objects.
const ObjectsMaxItems = 2000

// RevisionStatus is the status of a revision, as Helm records it.
type RevisionStatus string

// Helm's statuses.
const (
	RevisionDeployed        RevisionStatus = "deployed"
	RevisionSuperseded      RevisionStatus = "superseded"
	RevisionFailed          RevisionStatus = "failed"
	RevisionUninstalled     RevisionStatus = "uninstalled"
	RevisionUninstalling    RevisionStatus = "uninstalling"
	RevisionPendingInstall  RevisionStatus = "pending-install"
	RevisionPendingUpgrade  RevisionStatus = "pending-upgrade"
	RevisionPendingRollback RevisionStatus = "pending-rollback"
)

// Pending reports whether an install, upgrade or rollback is running, or was interrupted.
func (s RevisionStatus) Pending() bool {
	return s == RevisionPendingInstall || s == RevisionPendingUpgrade || s == RevisionPendingRollback
}

// Applied reports whether the objects of the revision were applied, except for those of later waves.
func (s RevisionStatus) Applied() bool { return s == RevisionDeployed || s == RevisionSuperseded }

// RevisionFailure is the kind of failure of a revision, on which the next action depends.
type RevisionFailure string

// The kinds of failure. A revision that another program failed to deploy has none.
const (
	// FailureRejected: the API server refused an object.
	FailureRejected RevisionFailure = "Rejected"
	// FailureUnavailable: a request failed for a reason that may go away by itself.
	FailureUnavailable RevisionFailure = "Unavailable"
	// FailureInterrupted: the process stopped, or could not record the result. This says nothing
	// about the revision itself.
	FailureInterrupted RevisionFailure = "Interrupted"
	// FailureUnhealthy: the objects did not become healthy in time.
	FailureUnhealthy RevisionFailure = "Unhealthy"
	// FailureFinal: an object cannot become healthy, however long one waits.
	FailureFinal RevisionFailure = "Final"
)

// ReleaseRevision is one entry in a release's history.
type ReleaseRevision struct {
	// revision of the release, counted from 1.
	Number int `json:"revision"`

	// version of the provider, e.g. `v1.13.5`.
	// +optional
	Version string `json:"version,omitempty"`

	// chartDigest is the digest of the chart's archive.
	// +optional
	ChartDigest string `json:"chartDigest,omitempty"`

	// digest of the revision: the operator uses only records of Helm that have it. It is empty for revisions of
	// other programs, and until Helm's record is created.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Digest string `json:"digest,omitempty"`

	// status as Helm reports it, e.g. `deployed`, `superseded` or `failed`.
	// +optional
	Status RevisionStatus `json:"status,omitempty"`

	// healthy is true once all objects of the revision have been healthy at the same time, so that it can be
	// rolled back to. It and the fields after it, but for `time`, are set for revisions with a digest only.
	// +optional
	Healthy bool `json:"healthy,omitempty"`

	// failure is why the revision failed, e.g. `Rejected` or `Unhealthy`.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Failure RevisionFailure `json:"failure,omitempty"`

	// wave is the last wave that was applied, while others are left.
	// +optional
	Wave *int `json:"wave,omitempty"`

	// lastTransitionTime is when the revision reached this status and wave; its deadline and retries count from
	// it.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty,omitzero"`

	// finishedJobs identifies the completed Jobs of the revision, which are not run again.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=63
	FinishedJobs []string `json:"finishedJobs,omitempty"`

	// request that the revision results from, or that was handled last while it was the newest one.
	// +optional
	Request RevisionRequest `json:"request,omitempty,omitzero"`

	// adopted is the number of existing objects that became part of the release with the revision.
	// +optional
	Adopted int `json:"adopted,omitempty"`

	// adoptedVersion is the version of the provider that these objects were, if it is known.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	AdoptedVersion string `json:"adoptedVersion,omitempty"`

	// contentDigest identifies what the revision was created from: the content of the chart, the values, and the changes
	// of the manifest.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	ContentDigest string `json:"contentDigest,omitempty"`

	// inputs identify what the revision was created from besides the resource.
	// +optional
	Inputs RevisionInputs `json:"inputs,omitempty,omitzero"`

	// rollbackTo is the revision that the revision is a rollback to.
	// +optional
	RollbackTo int `json:"rollbackTo,omitempty"`

	// paused is true if the revision runs no managers.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// time at which the revision was created.
	// +optional
	Time metav1.Time `json:"time,omitempty,omitzero"`
}

// RevisionInputs are digests of the inputs of a revision besides the resource. The digest of an unused input is empty.
type RevisionInputs struct {
	// variables is the digest of the values of the variables in use, from the Secret.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Variables string `json:"variables,omitempty"`

	// manifests is the digest of the additional manifests.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Manifests string `json:"manifests,omitempty"`

	// source is the digest of the provider's components and metadata.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Source string `json:"source,omitempty"`
}
