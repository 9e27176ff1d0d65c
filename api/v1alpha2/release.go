package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReleaseSpec configures how a provider's Helm release is managed.
//
// +kubebuilder:validation:XValidation:rule="(has(self.historyLimit) ? self.historyLimit : 10) >= 2 * (has(self.retries) ? self.retries : 3) + 3",message="historyLimit (default 10) must be at least 2 × retries (default 3) + 3, so that failed attempts do not push the last healthy revision out of the history"
type ReleaseSpec struct {
	// historyLimit is how many revisions are kept. Default: 10.
	// +optional
	// +kubebuilder:validation:Minimum=3
	// +kubebuilder:validation:Maximum=100
	HistoryLimit *int32 `json:"historyLimit,omitempty"`

	// timeout is how long a new revision has to become healthy, e.g. `10m`. Default: 5m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="must be greater than 0s, e.g. 10m"
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// retries is how many times a failed install or upgrade is retried. Then the operator waits until this
	// resource or one of its inputs changes. Default: 3.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=20
	Retries *int32 `json:"retries,omitempty"`

	// retryInterval is the time before the first retry, e.g. `30s`. It doubles with each retry, up to 10m.
	// Default: 5s.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('10m')",message="must be between 1s and 10m, e.g. 30s"
	RetryInterval *metav1.Duration `json:"retryInterval,omitempty"`

	// onFailure is the action after a failed revision: Rollback returns to the last healthy one, None leaves it
	// in place. Default: Rollback.
	// +optional
	// +kubebuilder:validation:Enum=Rollback;None
	OnFailure FailurePolicy `json:"onFailure,omitempty"`

	// onExternalChange is the action after another program creates a revision, e.g. `helm rollback`: Hold keeps
	// it until this resource changes, Revert undoes it. Default: Hold.
	// +optional
	// +kubebuilder:validation:Enum=Hold;Revert
	OnExternalChange ExternalChangePolicy `json:"onExternalChange,omitempty"`

	// drift is the action when something else changes or deletes an object of the release: Correct undoes that,
	// Warn reports it, Off ignores it. Default: Correct.
	// +optional
	// +kubebuilder:validation:Enum=Correct;Warn;Off
	Drift DriftPolicy `json:"drift,omitempty"`

	// rollbackTo is the revision to return to. While it is set, nothing else is installed. Default:
	// none.
	// +optional
	// +kubebuilder:validation:Minimum=1
	RollbackTo *int `json:"rollbackTo,omitempty"`
}

// FailurePolicy is the action after a failed revision.
type FailurePolicy string

// The values of release.onFailure.
const (
	FailureRollback FailurePolicy = "Rollback"
	FailureNone     FailurePolicy = "None"
)

// ExternalChangePolicy is the action after another program creates a revision.
type ExternalChangePolicy string

// The values of release.onExternalChange.
const (
	ExternalChangeHold   ExternalChangePolicy = "Hold"
	ExternalChangeRevert ExternalChangePolicy = "Revert"
)

// DriftPolicy is the action when an object of the release is changed by something else.
type DriftPolicy string

// The values of release.drift.
const (
	DriftCorrect DriftPolicy = "Correct"
	DriftWarn    DriftPolicy = "Warn"
	DriftOff     DriftPolicy = "Off"
)

// CRDsSpec configures how a provider's CustomResourceDefinitions are managed.
type CRDsSpec struct {
	// policy is which CustomResourceDefinitions the operator applies: Upgrade creates and upgrades them,
	// CreateOnly creates missing ones, None does neither. The others are still checked for compatibility.
	// Default: Upgrade.
	// +optional
	// +kubebuilder:validation:Enum=Upgrade;CreateOnly;None
	Policy CRDsPolicy `json:"policy,omitempty"`

	// unmanaged are names of CustomResourceDefinitions that are managed elsewhere, e.g.
	// `awsclusters.infrastructure.cluster.x-k8s.io`. The operator only checks their compatibility.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=512
	// +kubebuilder:validation:items:MaxLength=253
	Unmanaged []string `json:"unmanaged,omitempty"`
}

// CRDsPolicy selects which CustomResourceDefinitions the operator applies.
type CRDsPolicy string

// The values of crds.policy.
const (
	CRDsUpgrade    CRDsPolicy = "Upgrade"
	CRDsCreateOnly CRDsPolicy = "CreateOnly"
	CRDsNone       CRDsPolicy = "None"
)

// UpgradePolicy configures automatic upgrades: to the newest version in the range `spec.version` that has
// the same Cluster API contract. Pre-releases and versions with build metadata are never selected. This
// spec does not change: `status.desiredVersion` does.
type UpgradePolicy struct {
	// mode selects the versions: Manual none, Patch those with the same minor version, Minor also those
	// with the same major version, one minor version after the other. Patch and Minor require a range in `spec.version`.
	// Default: Manual.
	// +optional
	// +kubebuilder:validation:Enum=Manual;Patch;Minor
	Mode UpgradeMode `json:"mode,omitempty"`

	// window restricts when automatic upgrades start. Default: at any time.
	// +optional
	Window *MaintenanceWindow `json:"window,omitempty"`
}

// UpgradeMode selects the versions of automatic upgrades.
type UpgradeMode string

// The values of upgradePolicy.mode.
const (
	UpgradeManual UpgradeMode = "Manual"
	UpgradePatch  UpgradeMode = "Patch"
	UpgradeMinor  UpgradeMode = "Minor"
)

// MaintenanceWindow is a time that recurs.
type MaintenanceWindow struct {
	// schedule is when the window opens: minute, hour, day of the month, month and day of the week, as in a
	// CronJob, e.g. `0 2 * * sat`. A time that daylight saving skips or repeats counts once.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z*?,/-]+( [0-9A-Za-z*?,/-]+){4}$`
	Schedule string `json:"schedule"`

	// duration is how long the window is open, e.g. `2h`. An upgrade that has started continues after the end.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('168h')",message="must be between 1m and 168h, e.g. 2h"
	Duration metav1.Duration `json:"duration"`

	// timeZone of the schedule in the IANA database, e.g. `Europe/Berlin`. Default: UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$`
	TimeZone string `json:"timeZone,omitempty"`
}
