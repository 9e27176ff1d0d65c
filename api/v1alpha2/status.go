package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HistoryMaxItems is the greatest number of entries in status.history.
const HistoryMaxItems = 20

// ProviderStatus says what is installed. All kinds share it.
type ProviderStatus struct {
	// observedGeneration is the generation of the spec that the rest of the status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions: Ready sums them up. Reconciling and Stalled report whether work is going on or has
	// stopped; PreflightCheckPassed, ProviderInstalled and ProviderUpgraded tell of the steps.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// contract of Cluster API that the installed version abides by, e.g. `v1beta2`.
	// +optional
	Contract *string `json:"contract,omitempty"`

	// installedVersion is the version that was last installed and became healthy, e.g. `v1.13.5`.
	// +optional
	InstalledVersion *string `json:"installedVersion,omitempty"`

	// desiredVersion is the exact version that `spec.version` came to, e.g. `v1.13.5`. It stays
	// until `spec.version` changes.
	// +optional
	DesiredVersion string `json:"desiredVersion,omitempty"`

	// chart that the desired version was packaged into.
	// +optional
	Chart *ChartStatus `json:"chart,omitempty"`

	// release is the provider's Helm release.
	// +optional
	Release *ReleaseStatus `json:"release,omitempty"`

	// history of the release, newest first: what `helm history` shows, with the digests of the
	// charts.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	History []ReleaseRevision `json:"history,omitempty"`

	// availableUpgrades are newer versions that fit the contracts in use: the newest patch of the
	// installed minor version, and the newest of all. Empty also when the source cannot list
	// versions. Looked up at most once an hour, or on request.
	// +optional
	// +listType=atomic
	AvailableUpgrades []AvailableUpgrade `json:"availableUpgrades,omitempty"`

	// missingVariables are the variables without a default that neither the Secret nor
	// `spec.variables` gives, sorted.
	// +optional
	// +listType=atomic
	MissingVariables []string `json:"missingVariables,omitempty"`

	// orphanedCRDs are the provider's CustomResourceDefinitions that the desired version no longer
	// brings, sorted. They and their objects stay.
	// +optional
	// +listType=atomic
	OrphanedCRDs []string `json:"orphanedCRDs,omitempty"`

	// lastHandledReconcileAt is the value of the annotation `reconcile.fluxcd.io/requestedAt` that
	// was last acted upon.
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`
}

// ChartStatus names a chart and where it is kept.
type ChartStatus struct {
	// name of the chart, e.g. `infrastructure-aws`.
	// +optional
	Name string `json:"name,omitempty"`

	// version of the chart: the provider's version without its `v`, e.g. `2.11.1`.
	// +optional
	Version string `json:"version,omitempty"`

	// reference under which the chart is kept, in an OCI registry or in the cluster.
	// +optional
	Reference string `json:"reference,omitempty"`

	// digest of the chart's archive, e.g. `sha256:` and 64 hexadecimal digits.
	// +optional
	Digest string `json:"digest,omitempty"`

	// source that the chart was made from, or that it was taken from as it is: for what comes from
	// a registry its reference with the digest, e.g.
	// `oci://registry.example.com/capi/infrastructure-aws:v2.11.1@sha256:` and 64 hexadecimal
	// digits.
	// +optional
	Source string `json:"source,omitempty"`

	// plain is true of a Helm chart that Capstan did not make: it is installed with its own values,
	// and its contract is not known.
	// +optional
	Plain bool `json:"plain,omitempty"`
}

// AvailableUpgrade is a version that the provider could be upgraded to.
type AvailableUpgrade struct {
	// version of the provider, e.g. `v1.13.6`.
	Version string `json:"version"`

	// contract of Cluster API that the version abides by, e.g. `v1beta2`.
	Contract string `json:"contract"`
}

// ReleaseStatus is a Helm release as it was last seen.
type ReleaseStatus struct {
	// name of the release.
	// +optional
	Name string `json:"name,omitempty"`

	// namespace of the release.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// revision that is current.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// status of that revision in Helm's words, e.g. `deployed` or `failed`.
	// +optional
	Status string `json:"status,omitempty"`
}

// ReleaseRevision is one entry in a release's history.
type ReleaseRevision struct {
	// revision of the release, counted from 1.
	Revision int64 `json:"revision"`

	// version of the provider, e.g. `v1.13.5`.
	// +optional
	Version string `json:"version,omitempty"`

	// chartDigest is the digest of the chart's archive.
	// +optional
	ChartDigest string `json:"chartDigest,omitempty"`

	// status in Helm's words, e.g. `deployed`, `superseded` or `failed`.
	// +optional
	Status string `json:"status,omitempty"`

	// time at which the revision was made.
	// +optional
	Time metav1.Time `json:"time,omitempty,omitzero"`
}
