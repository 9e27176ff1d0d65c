package v1alpha2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Condition types. Ready, Reconciling and Stalled follow kstatus, so `kubectl wait`, Flux and
// Argo CD understand them. PreflightCheckPassed, ProviderInstalled and ProviderUpgraded are
// cluster-api-operator's. The others are Capstan's own.
const (
	// ReadyCondition is True when the desired version is installed and healthy. Otherwise the
	// message says what is running, why it is not what the spec asks for, and how to fix that.
	ReadyCondition = "Ready"

	// ReconcilingCondition is True while the operator is working on the provider or waiting for
	// something it watches. It is absent otherwise.
	ReconcilingCondition = "Reconciling"

	// StalledCondition is True when the operator has stopped making progress until the resource or
	// one of its inputs changes. It is absent otherwise.
	StalledCondition = "Stalled"

	// PreflightCheckCondition is True when all checks that precede an installation have passed.
	PreflightCheckCondition = "PreflightCheckPassed"

	// ProviderInstalledCondition is True when the provider's objects have been applied.
	ProviderInstalledCondition = "ProviderInstalled"

	// ProviderUpgradedCondition is True when the last upgrade succeeded, which is known once the new version is healthy.
	// It is absent before the first upgrade, and until then.
	ProviderUpgradedCondition = "ProviderUpgraded"

	// PausedCondition is True when the provider's Deployments are scaled to zero because of
	// spec.paused. It is absent otherwise.
	PausedCondition = "Paused"

	// DriftedCondition is True while objects differ from the release because something else changed
	// them. The message names the objects and their fields. It is Unknown while there are objects that the
	// operator may not watch, or that the API server cannot convert, and absent otherwise.
	DriftedCondition = "Drifted"

	// WebhooksTrustedCondition is True while the provider's webhooks have the CA of their Certificates, which
	// cert-manager injects, and False while they do not, so that the API server cannot call them. The provider is
	// then not Ready. It is absent if nothing is injected, and if the operator may not read the Secret of a
	// Certificate.
	WebhooksTrustedCondition = "WebhooksTrusted"

	// ChangesPendingCondition is True while the current revision would be created differently now,
	// because a Secret, a ConfigMap, the operator or the cluster has changed and the resource has not.
	// It is absent otherwise. The message names what has changed, and how to apply it.
	ChangesPendingCondition = "ChangesPending"

	// InputsUnavailableCondition is True while the source, a Secret or a ConfigMap cannot be used,
	// although what the resource asks for was installed from it before. It is absent otherwise, and
	// has the reason that Ready has if nothing is installed.
	InputsUnavailableCondition = "InputsUnavailable"

	// CRDsSafeCondition is False when a change to the provider's CustomResourceDefinitions would
	// break objects or another provider, or could not be tried on the objects, and was therefore not applied. It is
	// absent until existing CustomResourceDefinitions change.
	CRDsSafeCondition = "CRDsSafe"

	// CRDsMigratedCondition is True when every object of the provider's kinds is stored in the
	// storage version of its CustomResourceDefinition. It is absent until there is something to
	// migrate.
	CRDsMigratedCondition = "CRDsMigrated"
)

// Reasons of PreflightCheckPassed. The strings up to and including
// UnsupportedProviderDowngradeReason are cluster-api-operator's, even where they end in "Reason".
const (
	// PreflightChecksPassedReason: all checks passed.
	PreflightChecksPassedReason = "PreflightChecksPassed"

	// MoreThanOneProviderInstanceExistsReason: another resource, in any namespace, has installed the
	// same provider.
	MoreThanOneProviderInstanceExistsReason = "MoreThanOneExists"

	// IncorrectVersionFormatReason: spec.version is not a valid version range.
	IncorrectVersionFormatReason = "IncorrectVersionFormat"

	// InvalidUpgradePolicyReason: spec.upgradePolicy cannot be used. The message names the field.
	InvalidUpgradePolicyReason = "InvalidUpgradePolicy"

	// IncorrectCoreProviderNameReason: the CoreProvider is not named cluster-api.
	IncorrectCoreProviderNameReason = "IncorrectCoreProviderNameReason"

	// FetchConfigValidationErrorReason: spec.fetchConfig is invalid, or missing for a provider that
	// clusterctl does not know.
	FetchConfigValidationErrorReason = "FetchConfigValidationError"

	// InvalidGithubTokenReason: GitHub rejected the token in the provider's Secret.
	InvalidGithubTokenReason = "InvalidGithubTokenError"

	// WaitingForCoreProviderReadyReason: the CoreProvider does not exist, is not ready yet, or is changing
	// its version.
	WaitingForCoreProviderReadyReason = "WaitingForCoreProviderReady"

	// UnsupportedProviderDowngradeReason: spec.version is older than the installed version, and the
	// downgrade is not safe.
	UnsupportedProviderDowngradeReason = "UnsupportedProviderDowngradeReason"

	// SecretNotFoundReason: the Secret with the provider's variables does not exist.
	SecretNotFoundReason = "SecretNotFound"

	// MissingVariablesReason: variables without a default have no value. The message and
	// status.missingVariables list all of them.
	MissingVariablesReason = "MissingVariables"

	// KubeConfigErrorReason: spec.kubeConfig does not give access to a cluster.
	KubeConfigErrorReason = "KubeConfigError"

	// MissingPermissionsReason: the ServiceAccount that installs the provider, or the operator if there is none,
	// lacks permissions. The message names them.
	MissingPermissionsReason = "MissingPermissions"

	// AccessDeniedReason: the resource names an object in another namespace, which the operator's flag
	// --no-cross-namespace-refs does not allow, or is in the operator's own namespace.
	AccessDeniedReason = "AccessDenied"

	// CertManagerMissingReason: the provider needs cert-manager, but its API is not served.
	CertManagerMissingReason = "CertManagerMissing"

	// WaitingForDependenciesReason: a provider in spec.dependsOn is not ready.
	WaitingForDependenciesReason = "WaitingForDependencies"

	// DependencyCycleReason: the provider depends on itself, by spec.dependsOn.
	DependencyCycleReason = "DependencyCycle"

	// OtherOperatorRunningReason: cluster-api-operator manages the resource, too, so nothing is changed.
	OtherOperatorRunningReason = "OtherOperatorRunning"

	// ChangeRefusedReason: admission control refuses changes of the resource itself.
	ChangeRefusedReason = "ChangeRefused"
)

// Reasons of ProviderInstalled and ProviderUpgraded. The strings up to and including
// ComponentsUpgradeErrorReason are cluster-api-operator's.
const (
	// ProviderInstalledReason: the provider's objects have been applied.
	ProviderInstalledReason = "ProviderInstalled"

	// ProviderUpgradedReason: the last upgrade succeeded.
	ProviderUpgradedReason = "ProviderUpgraded"

	// UnknownProviderReason: clusterctl knows no provider of this kind and name, and
	// spec.fetchConfig is not set.
	UnknownProviderReason = "UnknownProvider"

	// CAPIVersionIncompatibilityReason: the provider's contract is unknown, unsupported or
	// incompatible with the CoreProvider's.
	CAPIVersionIncompatibilityReason = "CAPIVersionIncompatibility"

	// ComponentsFetchErrorReason: the source is unreachable or lacks the expected files.
	ComponentsFetchErrorReason = "ComponentsFetchError"

	// ComponentsCustomizationErrorReason: spec.manager, spec.deployment or
	// spec.additionalDeployments do not match the components.
	ComponentsCustomizationErrorReason = "ComponentsCustomizationError"

	// ComponentsPatchErrorReason: a patch does not apply to the components.
	ComponentsPatchErrorReason = "ComponentsPatchError"

	// ComponentsImageOverrideErrorReason: an image cannot be overridden.
	ComponentsImageOverrideErrorReason = "ComponentsImageOverrideError"

	// InstallFailedReason: Helm could not install the chart.
	InstallFailedReason = "InstallFailed"

	// TimedOutWaitingForDeploymentReason: the provider did not become healthy in time.
	TimedOutWaitingForDeploymentReason = "TimedOutWaitingForDeployment"

	// ComponentsUpgradeErrorReason: Helm could not upgrade the release.
	ComponentsUpgradeErrorReason = "ComponentsUpgradeError"

	// UninstalledReason: the resource is being deleted and the provider's objects are gone, or the release has no records
	// any more. Ready says what remains to be done.
	UninstalledReason = "Uninstalled"

	// VersionNotFoundReason: the source has no version that matches spec.version.
	VersionNotFoundReason = "VersionNotFound"

	// UntrustedSourceReason: the content does not have the digest or the signature that
	// spec.fetchConfig requires.
	UntrustedSourceReason = "UntrustedSource"

	// InvalidComponentsReason: the components or the metadata violate the provider contract, e.g.
	// they are not YAML, contain two Namespaces, or the metadata lacks the version's release series.
	InvalidComponentsReason = "InvalidComponents"

	// ChartStoreErrorReason: the chart could not be stored in or read from the cluster.
	ChartStoreErrorReason = "ChartStoreError"

	// CRDsNotReadyReason: CustomResourceDefinitions were rejected or are not established yet.
	CRDsNotReadyReason = "CRDsNotReady"

	// CRDConflictReason: a CustomResourceDefinition of the provider has another owner. The message
	// names both.
	CRDConflictReason = "CRDConflict"

	// IncompatibleCRDReason: a CustomResourceDefinition that is managed elsewhere is incompatible with this
	// version.
	IncompatibleCRDReason = "IncompatibleCRD"

	// WaitingForCRDsReason: a CustomResourceDefinition that is managed elsewhere is missing, or a kind of another
	// project that the provider needs is not served.
	WaitingForCRDsReason = "WaitingForCRDs"
)

// Reasons of CRDsSafe and CRDsMigrated.
const (
	// CRDsCheckedReason: the last change broke nothing, or only what a user allowed.
	CRDsCheckedReason = "CRDsChecked"

	// UnsafeCRDsReason: the change would break objects or another provider. The message names them and the fix.
	UnsafeCRDsReason = "UnsafeCRDs"

	// UnreadableObjectsReason: the change could not be tried, because objects cannot be converted to be read. The message
	// names the CustomResourceDefinition, its webhook, and the ways out. Ready and Drifted have it if the health and drift
	// of an object are not known therefore.
	UnreadableObjectsReason = "UnreadableObjects"

	// CRDsMigratedReason: all objects are stored in the storage version.
	CRDsMigratedReason = "CRDsMigrated"

	// MigratingCRDsReason: objects are being rewritten. The message reports the progress.
	MigratingCRDsReason = "MigratingCRDs"

	// WaitingForManagerReason: the provider's manager is given time to rewrite the objects itself.
	WaitingForManagerReason = "WaitingForManager"

	// MigrationPendingReason: objects may be stored in old versions of CustomResourceDefinitions that the installed
	// version does not include, or that a newer version has applied. They are rewritten once a version is installed
	// that has them.
	MigrationPendingReason = "MigrationPending"

	// CRDMigrationFailedReason: objects could not be rewritten; the operator retries.
	CRDMigrationFailedReason = "CRDMigrationFailed"
)

// Reasons of events that no condition uses.
const (
	// ReleaseKeptReason: a resource is gone, and its release was kept in a remote cluster that cannot
	// be reached.
	ReleaseKeptReason = "ReleaseKept"

	// TakenOverReason: cluster-api-operator has managed the resource, and has stopped.
	TakenOverReason = "TakenOver"

	// AutomaticUpgradeReason: an upgrade that spec.upgradePolicy allows has started.
	AutomaticUpgradeReason = "AutomaticUpgrade"

	// AutomaticUpgradeFailedReason: an automatic upgrade was rolled back. The version is not tried again.
	AutomaticUpgradeFailedReason = "AutomaticUpgradeFailed"

	// MinorVersionsSkippedReason: an upgrade that a user has asked for leaves minor versions out.
	MinorVersionsSkippedReason = "MinorVersionsSkipped"

	// AdoptedReason: objects that existed before, and belonged to no release, have become part of the
	// provider's release.
	AdoptedReason = "Adopted"

	// CRDDeletingReason: a CustomResourceDefinition of an installed provider is being deleted.
	CRDDeletingReason = "CRDDeleting"

	// OrphanedCRDsReason: CustomResourceDefinitions stay that the version which was applied does not include. It is a
	// warning if an automatic rollback leaves objects of theirs.
	OrphanedCRDsReason = "OrphanedCRDs"

	// UnsafeCRDsAllowedReason: unsafe changes are applied because AllowUnsafeCRDAnnotation allows
	// them.
	UnsafeCRDsAllowedReason = "UnsafeCRDsAllowed"
)

// Reasons of Ready, Reconciling and Stalled. They also use the reasons of the steps above.
const (
	// HealthyReason: every object of the release is healthy.
	HealthyReason = "Healthy"

	// ProgressingReason: work is in progress.
	ProgressingReason = "Progressing"

	// InternalErrorReason: a bug in Capstan ended the reconcile, which is tried again. The message says what to report.
	InternalErrorReason = "InternalError"

	// UnhealthyReason: objects of the release were healthy and no longer are. The message names
	// them.
	UnhealthyReason = "Unhealthy"

	// ExternalChangeReason: another program, such as helm, changed the release, and the operator
	// accepts that. The message says how to keep or undo the change.
	ExternalChangeReason = "ExternalChange"

	// ClusterUnreachableReason: the API server of spec.kubeConfig does not answer. The providers there
	// keep running, and the operator continues when it answers.
	ClusterUnreachableReason = "ClusterUnreachable"

	// PausedReason: spec.paused is true, so the provider is installed but not running.
	PausedReason = "ScaledDown"

	// SuspendedReason: spec.suspend is true, so nothing is changed.
	SuspendedReason = "Suspended"

	// DeletingReason: the resource is being deleted and the provider removed.
	DeletingReason = "Deleting"

	// DeletionBlockedReason: the provider is still in use, so it is not removed. The message names
	// what uses it.
	DeletionBlockedReason = "DeletionBlocked"
)

// Reasons of WebhooksTrusted.
const (
	// CAInjectedReason: the webhooks have the CA of their Certificates.
	CAInjectedReason = "CAInjected"

	// CAMissingReason: the webhooks do not have the CA yet. That fails no revision.
	CAMissingReason = "CAMissing"

	// CALostReason: the webhooks had the CA, and no longer have it. A revision that was created before is not healthy
	// until they have it again.
	CALostReason = "CALost"
)

// Reasons of ChangesPending.
const (
	// InputsChangedReason: a Secret or ConfigMap that the resource names has changed, and possibly also
	// the operator.
	InputsChangedReason = "InputsChanged"

	// EnvironmentChangedReason: the operator or its configuration has changed.
	EnvironmentChangedReason = "EnvironmentChanged"
)

// Reasons of Drifted, and of the events about drift.
const (
	// DriftDetectedReason: objects differ, and release.drift or suspend prevents a correction.
	DriftDetectedReason = "DriftDetected"

	// DriftNotCorrectedReason: objects differ and could not be corrected, or are changed back every
	// time.
	DriftNotCorrectedReason = "DriftNotCorrected"

	// DriftCorrectedReason: objects differed and have been corrected. Only events have this reason.
	DriftCorrectedReason = "DriftCorrected"

	// FieldsRemovedReason: fields of others were removed from an object, because they are invalid beside those of the
	// release. Only events have this reason.
	FieldsRemovedReason = "FieldsRemoved"

	// RecreatedReason: an object was deleted and created again to change an immutable field. Only events have this
	// reason.
	RecreatedReason = "Recreated"
)

// FindCondition returns a condition of a list; zero if there is none.
func FindCondition(list []metav1.Condition, name string) metav1.Condition {
	for _, condition := range list {
		if condition.Type == name {
			return condition
		}
	}

	return metav1.Condition{}
}
