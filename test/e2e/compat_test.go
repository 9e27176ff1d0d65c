package e2e

import (
	"github.com/capstan-project/capstan/test/compat/table"
)

// The rows of the table that `make compat` prints, for scenarios that show what users of cluster-api-operator and
// clusterctl ask.
var (
	rowFiveProviders = table.Row("Other clients", "five real providers at once")
	rowHelmKept      = table.Row("Other clients", "helm rollback, uninstall: accepted", "an installed provider is")
	rowHelmUndone    = table.Row("Other clients", "helm rollback and uninstall: undone if the resource says so")
	rowHelmList      = table.Row("Other clients", "helm list")

	rowFailure        = table.Row(otherDifferences, "an upgrade that fails", "failed upgrade")
	rowFailedJob      = table.Row(otherDifferences, "a Job among the components that fails", "health")
	rowUnsafeCRDs     = table.Row(otherDifferences, "CRDs that would break an object", "CRDs")
	rowInUse          = table.Row(otherDifferences, "deletion of a provider in use", "removal")
	rowDeletedObject  = table.Row(otherDifferences, "an object that a user deletes", "changes by others")
	rowNeverStarts    = table.Row(otherDifferences, "a manager that never starts", "one broken provider")
	rowUnwatched      = table.Row(otherDifferences, "a changed Secret, without a flag", "configSecret")
	rowLabeledSources = table.Row(otherDifferences, "ConfigMaps without fetchConfig", "no fetchConfig")
	rowPlainChart     = table.Row(otherDifferences, "a Helm chart as the source", "fetchConfig.oci")

	rowForeign       = table.Row(takeovers, "a Helm release with a provider's name and another chart: refused")
	rowOwnChart      = table.Row(takeovers, "a Helm release with a provider's name and its chart: adopted")
	rowApart         = table.Row(takeovers, "a provider of clusterctl in another namespace: refused")
	rowSameNamespace = table.Row(takeovers, "a provider of clusterctl in the same namespace: adopted")
	rowAdopt         = table.Row(takeovers, "providers of clusterctl, by capstan adopt: all objects and pods kept")
	rowPredecessor   = table.Row(takeovers, "cluster-api-operator beside Capstan, its finalizer and its webhooks")
	rowRealOperator  = table.Row(takeovers, "five providers of the real cluster-api-operator: all kept")

	rowReclaimed = table.Row(takeovers, "fields that the adopted version had and the next one has not: removed")
	rowMistakes  = table.Row(takeovers, "mistakes of a migrating user: refused or harmless, with what to do")

	rowInit        = table.Row(firstInstallation, "capstan init in an empty cluster, with cert-manager")
	rowInitOffline = table.Row(firstInstallation, "capstan init from an archive, without internet access")
	rowOffline     = table.Row(firstInstallation, "five providers from a mirror, without internet access")

	rowOldContract = table.Row("Resources that the chart of cluster-api-operator makes",
		"a core of an older contract beside providers without a version")
)

// Sections of the table.
const (
	otherDifferences = "Other differences"
	takeovers        = "Takeover of what other programs have installed"

	firstInstallation = "First installation"
)
