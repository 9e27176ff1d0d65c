package e2e

import (
	"github.com/capstan-project/capstan/test/compat/table"
)

// The rows of the table that `make compat` prints, for scenarios that show what users of cluster-api-operator and
// clusterctl ask.
var (
	rowFiveProviders = table.Row("Other clients", "five real providers at once")
	rowHelmList      = table.Row("Other clients", "helm list of Helm 3 and 4", "an installed provider is")

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

	rowOldContract = table.Row("Resources that the chart of cluster-api-operator makes",
		"a core of an older contract beside providers without a version")
)

// Sections of the table.
const (
	otherDifferences = "Other differences"
	takeovers        = "Takeover of what other programs have installed"
)
