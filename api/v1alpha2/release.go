package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReleaseSpec says how a provider's Helm release is made and kept.
//
// +kubebuilder:validation:XValidation:rule="(has(self.historyLimit) ? self.historyLimit : 10) >= 2 * (has(self.retries) ? self.retries : 3) + 3",message="historyLimit (default 10) must be at least 2 × retries (default 3) + 3, or failed attempts would push the last healthy revision out of the history"
type ReleaseSpec struct {
	// historyLimit is how many revisions `helm history` keeps. Default: 10.
	// +optional
	// +kubebuilder:validation:Minimum=3
	// +kubebuilder:validation:Maximum=100
	HistoryLimit *int32 `json:"historyLimit,omitempty"`

	// timeout is how long the objects of a new revision may take to become healthy, e.g. `10m`.
	// Default: 5m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be longer than nothing, e.g. 10m"
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// retries is how often a failed install or upgrade is tried again before it is given up until
	// something changes. Default: 3.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=20
	Retries *int32 `json:"retries,omitempty"`

	// onFailure says what follows a revision that failed: Rollback returns to the last healthy one,
	// None leaves things as they are. Default: Rollback.
	// +optional
	// +kubebuilder:validation:Enum=Rollback;None
	OnFailure FailurePolicy `json:"onFailure,omitempty"`

	// onExternalChange says what follows a revision that somebody else made, e.g. by `helm
	// rollback`: Hold respects it until this resource changes, Revert undoes it. Default: Hold.
	// +optional
	// +kubebuilder:validation:Enum=Hold;Revert
	OnExternalChange ExternalChangePolicy `json:"onExternalChange,omitempty"`

	// drift says what follows when somebody changes or deletes an object of the release: Correct
	// undoes it, Warn reports it, Off does not look. Default: Correct.
	// +optional
	// +kubebuilder:validation:Enum=Correct;Warn;Off
	Drift DriftPolicy `json:"drift,omitempty"`

	// rollbackTo is a revision of the history to return to. While it is set, nothing else is
	// installed. Default: none.
	// +optional
	// +kubebuilder:validation:Minimum=1
	RollbackTo *int64 `json:"rollbackTo,omitempty"`
}

// FailurePolicy says what follows a revision that failed.
type FailurePolicy string

// The values of release.onFailure.
const (
	FailureRollback FailurePolicy = "Rollback"
	FailureNone     FailurePolicy = "None"
)

// ExternalChangePolicy says what follows a revision that somebody else made.
type ExternalChangePolicy string

// The values of release.onExternalChange.
const (
	ExternalChangeHold   ExternalChangePolicy = "Hold"
	ExternalChangeRevert ExternalChangePolicy = "Revert"
)

// DriftPolicy says what follows a change of an object behind the release's back.
type DriftPolicy string

// The values of release.drift.
const (
	DriftCorrect DriftPolicy = "Correct"
	DriftWarn    DriftPolicy = "Warn"
	DriftOff     DriftPolicy = "Off"
)

// CRDsSpec says how a provider's CustomResourceDefinitions are handled.
type CRDsSpec struct {
	// policy: Upgrade creates and upgrades them, CreateOnly creates those that do not exist, None
	// does neither. What is left alone is still checked for compatibility. They are never deleted.
	// Default: Upgrade.
	// +optional
	// +kubebuilder:validation:Enum=Upgrade;CreateOnly;None
	Policy CRDsPolicy `json:"policy,omitempty"`

	// unmanaged are names of CustomResourceDefinitions that somebody else looks after, e.g.
	// `awsclusters.infrastructure.cluster.x-k8s.io`. They are only checked for compatibility.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=512
	// +kubebuilder:validation:items:MaxLength=253
	Unmanaged []string `json:"unmanaged,omitempty"`
}

// CRDsPolicy says what is done with CustomResourceDefinitions.
type CRDsPolicy string

// The values of crds.policy.
const (
	CRDsUpgrade    CRDsPolicy = "Upgrade"
	CRDsCreateOnly CRDsPolicy = "CreateOnly"
	CRDsNone       CRDsPolicy = "None"
)
