package v1alpha2

// Condition types. Ready, Reconciling and Stalled follow kstatus, so that `kubectl wait`, Flux and
// Argo CD understand them; the others are cluster-api-operator's.
const (
	// ReadyCondition is True when the desired version is installed and healthy.
	ReadyCondition = "Ready"

	// ReconcilingCondition is True while work on the provider goes on or waits for something, and
	// absent otherwise.
	ReconcilingCondition = "Reconciling"

	// StalledCondition is True when the operator has given up until the resource or one of its
	// inputs changes, and absent otherwise.
	StalledCondition = "Stalled"

	// PreflightCheckCondition is True when nothing stands in the way of installing the provider.
	PreflightCheckCondition = "PreflightCheckPassed"

	// ProviderInstalledCondition is True when the provider's objects were applied.
	ProviderInstalledCondition = "ProviderInstalled"

	// ProviderUpgradedCondition is True when the last upgrade went through; it is absent before the
	// first.
	ProviderUpgradedCondition = "ProviderUpgraded"

	// PausedCondition is True when the provider's Deployments were scaled to no replicas because of
	// spec.paused, and absent otherwise.
	PausedCondition = "Paused"

	// DriftedCondition is True while objects are not as the release says, by somebody else's doing,
	// and absent otherwise. The message names them and their fields.
	DriftedCondition = "Drifted"

	// SourceChangedCondition is True while the tag in a registry that the chart in use came from
	// leads to something else, and absent otherwise. Nothing changes by that: the message tells
	// both digests, how to accept the change and how not to.
	SourceChangedCondition = "SourceChanged"

	// CRDsSafeCondition is False when a change of the provider's CustomResourceDefinitions would
	// break objects or clients, and so was not applied. It is absent until
	// CustomResourceDefinitions that exist change.
	CRDsSafeCondition = "CRDsSafe"

	// CRDsMigratedCondition is True when every object of the provider's kinds is stored in its
	// CustomResourceDefinition's storage version. It is absent until there is something to migrate.
	CRDsMigratedCondition = "CRDsMigrated"
)

// Reasons of PreflightCheckPassed. The strings are cluster-api-operator's up to and including
// UnsupportedProviderDowngradeReason, the ending "Reason" in some of them too.
const (
	// PreflightChecksPassedReason: all checks passed.
	PreflightChecksPassedReason = "PreflightChecksPassed"

	// MoreThanOneProviderInstanceExistsReason: a second resource asks for the same provider, in
	// whatever namespace.
	MoreThanOneProviderInstanceExistsReason = "MoreThanOneExists"

	// IncorrectVersionFormatReason: spec.version looks like a range of versions, and is none.
	IncorrectVersionFormatReason = "IncorrectVersionFormat"

	// IncorrectCoreProviderNameReason: the CoreProvider is not called cluster-api.
	IncorrectCoreProviderNameReason = "IncorrectCoreProviderNameReason"

	// FetchConfigValidationErrorReason: spec.fetchConfig is missing for a provider that clusterctl
	// does not know, or is wrong.
	FetchConfigValidationErrorReason = "FetchConfigValidationError"

	// InvalidGithubTokenReason: GitHub refuses the token in the provider's Secret.
	InvalidGithubTokenReason = "InvalidGithubTokenError"

	// WaitingForCoreProviderReadyReason: the CoreProvider is absent or not ready yet.
	WaitingForCoreProviderReadyReason = "WaitingForCoreProviderReady"

	// UnsupportedProviderDowngradeReason: spec.version is below what is installed, and that cannot
	// be undone safely.
	UnsupportedProviderDowngradeReason = "UnsupportedProviderDowngradeReason"

	// SecretNotFoundReason: the Secret with the variables does not exist.
	SecretNotFoundReason = "SecretNotFound"

	// MissingVariablesReason: variables without a default have no value. The message and
	// status.missingVariables name them all.
	MissingVariablesReason = "MissingVariables"

	// KubeConfigErrorReason: spec.kubeConfig does not lead to a cluster.
	KubeConfigErrorReason = "KubeConfigError"

	// MissingPermissionsReason: the ServiceAccount that the provider is to be installed with may
	// not do all that. The message lists what it may not.
	MissingPermissionsReason = "MissingPermissions"

	// CertManagerMissingReason: the provider needs cert-manager, and its API is not served.
	CertManagerMissingReason = "CertManagerMissing"
)

// Reasons of ProviderInstalled and ProviderUpgraded. The strings are cluster-api-operator's up to
// and including ComponentsUpgradeErrorReason.
const (
	// ProviderInstalledReason: the provider's objects were applied.
	ProviderInstalledReason = "ProviderInstalled"

	// ProviderUpgradedReason: the last upgrade went through.
	ProviderUpgradedReason = "ProviderUpgraded"

	// UnknownProviderReason: clusterctl knows no provider of this kind and name, and
	// spec.fetchConfig is not set.
	UnknownProviderReason = "UnknownProvider"

	// CAPIVersionIncompatibilityReason: the provider's contract is not known, not supported or does
	// not fit the CoreProvider's.
	CAPIVersionIncompatibilityReason = "CAPIVersionIncompatibility"

	// ComponentsFetchErrorReason: the source does not answer, or has not what it should have.
	ComponentsFetchErrorReason = "ComponentsFetchError"

	// ComponentsCustomizationErrorReason: spec.manager, spec.deployment or
	// spec.additionalDeployments do not fit the components.
	ComponentsCustomizationErrorReason = "ComponentsCustomizationError"

	// ComponentsPatchErrorReason: a patch does not fit the components.
	ComponentsPatchErrorReason = "ComponentsPatchError"

	// ComponentsImageOverrideErrorReason: an image cannot be replaced.
	ComponentsImageOverrideErrorReason = "ComponentsImageOverrideError"

	// InstallFailedReason: Helm could not install the chart.
	InstallFailedReason = "InstallFailed"

	// TimedOutWaitingForDeploymentReason: the provider did not become healthy in time.
	TimedOutWaitingForDeploymentReason = "TimedOutWaitingForDeployment"

	// ComponentsUpgradeErrorReason: Helm could not upgrade the release.
	ComponentsUpgradeErrorReason = "ComponentsUpgradeError"

	// UninstalledReason: the resource was deleted and the provider's objects with it; what remains
	// to be done is said in Ready.
	UninstalledReason = "Uninstalled"

	// VersionNotFoundReason: the source has no version that spec.version asks for.
	VersionNotFoundReason = "VersionNotFound"

	// UntrustedSourceReason: what the source has does not have the digest or the signature that
	// spec.fetchConfig asks for.
	UntrustedSourceReason = "UntrustedSource"

	// InvalidComponentsReason: components or metadata break a rule of the provider contract, e.g.
	// they are not YAML, bring two Namespaces, or the metadata lacks the version's release series.
	InvalidComponentsReason = "InvalidComponents"

	// ChartStoreErrorReason: the chart could not be stored in the cluster or read back; as an
	// event, it could not be pushed to the chart repository.
	ChartStoreErrorReason = "ChartStoreError"

	// CRDsNotReadyReason: CustomResourceDefinitions were refused or are not established yet.
	CRDsNotReadyReason = "CRDsNotReady"

	// CRDConflictReason: a CustomResourceDefinition of the provider belongs to somebody else. The
	// message names both.
	CRDConflictReason = "CRDConflict"

	// WaitingForCRDsReason: a CustomResourceDefinition that somebody else looks after is absent or
	// does not do for this version.
	WaitingForCRDsReason = "WaitingForCRDs"
)

// Reasons of CRDsSafe and CRDsMigrated.
const (
	// CRDsCheckedReason: the last change broke nothing. The message tells of what is worth knowing.
	CRDsCheckedReason = "CRDsChecked"

	// UnsafeCRDsReason: the change would break objects or clients. The message names the worst of
	// them and what to do.
	UnsafeCRDsReason = "UnsafeCRDs"

	// CRDsMigratedReason: all objects are stored in the storage version.
	CRDsMigratedReason = "CRDsMigrated"

	// MigratingCRDsReason: objects are being rewritten. The message says how many are.
	MigratingCRDsReason = "MigratingCRDs"

	// WaitingForManagerReason: the provider's manager gets the time to rewrite the objects itself.
	WaitingForManagerReason = "WaitingForManager"

	// CRDMigrationFailedReason: objects could not be rewritten, which is tried again.
	CRDMigrationFailedReason = "CRDMigrationFailed"
)

// Reasons of events that are not those of a condition.
const (
	// CRDDeletingReason: somebody deletes a CustomResourceDefinition of an installed provider.
	CRDDeletingReason = "CRDDeleting"

	// UnsafeCRDsAllowedReason: changes that would break something are applied, because
	// AllowUnsafeCRDAnnotation says so.
	UnsafeCRDsAllowedReason = "UnsafeCRDsAllowed"
)

// Reasons of Ready, Reconciling and Stalled, which otherwise carry the reason of the step they
// speak of.
const (
	// HealthyReason: every object of the release is healthy.
	HealthyReason = "Healthy"

	// ProgressingReason: work goes on.
	ProgressingReason = "Progressing"

	// UnhealthyReason: objects of the release were healthy, and some no longer are. The message
	// names them.
	UnhealthyReason = "Unhealthy"

	// ExternalChangeReason: another program, such as helm, changed the release, which is respected.
	// The message says how to accept or undo it.
	ExternalChangeReason = "ExternalChange"

	// PausedReason: spec.paused is true, so the provider is installed but does not run.
	PausedReason = "ScaledDown"

	// SuspendedReason: spec.suspend is true, so nothing is changed.
	SuspendedReason = "Suspended"

	// DeletingReason: the resource was deleted and the provider is being removed.
	DeletingReason = "Deleting"

	// DeletionBlockedReason: the provider is still in use, so it is not removed. The message says
	// by what.
	DeletionBlockedReason = "DeletionBlocked"
)

// TagMovedReason of SourceChanged: the tag has been made to lead elsewhere.
const TagMovedReason = "TagMoved"

// Reasons of Drifted, and of the events about it.
const (
	// DriftDetectedReason: objects differ, and are left so because of release.drift or suspend.
	DriftDetectedReason = "DriftDetected"

	// DriftNotCorrectedReason: objects differ and could not be corrected, or are changed back each
	// time.
	DriftNotCorrectedReason = "DriftNotCorrected"

	// DriftCorrectedReason: objects differed, and are as the release says again. It is the reason
	// of an event only.
	DriftCorrectedReason = "DriftCorrected"
)
