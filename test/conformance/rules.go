package conformance

import (
	"slices"

	"github.com/capstan-project/capstan/audit"
	"github.com/capstan-project/capstan/chartgen/lint"
)

const (
	contracts = "https://cluster-api.sigs.k8s.io/developer/providers/contracts"
	contract  = contracts + "/clusterctl"
)

var (
	chartRule = lint.Rule{
		Name:        "conformance/chart",
		Level:       lint.Error,
		Contract:    contract + "#metadata-yaml",
		Requirement: "A chart can be built from the release.",
		Why:         "Neither clusterctl nor Capstan can install the version.",
		Remedy:      "Correct the file that the message names.",
	}
	installRule = lint.Rule{
		Name:        "conformance/install",
		Level:       lint.Error,
		Contract:    contract + "#components-yaml",
		Requirement: "The provider can be installed, and all of its objects become healthy.",
		Why:         "Users cannot install the version.",
		Remedy:      "Correct the object that the message names.",
	}
	upgradeRule = lint.Rule{
		Name:        "conformance/upgrade",
		Level:       lint.Error,
		Contract:    contract + "#components-yaml",
		Requirement: "The provider can be upgraded from the previous version.",
		Why:         "Users of the previous version must remove the provider before they can install this one.",
		Remedy:      "Keep what the message names, such as a version of a CRD, until no user needs it.",
	}
	permissionRule = lint.Rule{
		Name:        "conformance/permissions",
		Level:       lint.Error,
		Contract:    contract + "#controllers--watching-namespace",
		Requirement: "A manager may list and watch the provider's kinds in all namespaces.",
		Why:         "The manager waits for its caches and reconciles nothing.",
		Remedy:      "Add the permission to the ClusterRole of the manager's ServiceAccount.",
	}
	managerRule = lint.Rule{
		Name:        "conformance/manager",
		Level:       lint.Error,
		Contract:    contract + "#controllers--watching-namespace",
		Requirement: "The manager runs, and reconciles a Cluster.",
		Why:         "It provides nothing, and whether it waits for an owner and an endpoint is not known.",
		Remedy:      "Correct what the manager's log says.",
	}
	ownerRule = lint.Rule{
		Name:        "conformance/owner",
		Level:       lint.Warning,
		Contract:    contracts + "/infra-cluster#typical-infracluster-reconciliation-workflow",
		Requirement: "The manager creates nothing for a control plane or infrastructure without an owner.",
		Why:         "The Cluster that must own it decides what to create and when to delete it, or pauses it.",
		Remedy:      "Return from the reconciliation until the owner reference to a Cluster is set.",
	}
	endpointRule = lint.Rule{
		Name:        "conformance/endpoint",
		Level:       lint.Warning,
		Contract:    contracts + "/control-plane#typical-controlplane-reconciliation-workflow",
		Requirement: "The manager creates no Machines of a control plane before the Cluster has an endpoint.",
		Why:         "Machines join the cluster at its endpoint, so they would fail.",
		Remedy:      "Return from the reconciliation until spec.controlPlaneEndpoint of the Cluster is set.",
	}
	availabilityRule = lint.Rule{
		Name:        "conformance/high-availability",
		Level:       lint.Info,
		Contract:    contract + "#controllers--watching-namespace",
		Requirement: "Users can make managers highly available, with spec.deployment.highAvailability.",
		Why:         "While a pod of the manager is replaced, the API server refuses what its webhooks must check.",
		Remedy: "Let the manager run in two pods, with leader election and a readiness probe, then upgrade it on a cluster " +
			"while capstan canary measures whether its webhooks answer.",
	}
	removeRule = lint.Rule{
		Name:        "conformance/removal",
		Level:       lint.Error,
		Contract:    contract + "#labels",
		Requirement: "The provider can be removed, and nothing of it remains.",
		Why:         "What remains blocks the deletion of its namespace, or the next installation.",
		Remedy:      "Remove the finalizer or the object that the message names from the components.",
	}
)

// Rules returns all rules, those of lint and audit included.
func Rules() []lint.Rule {
	own := []lint.Rule{
		chartRule, installRule, upgradeRule, permissionRule, availabilityRule, managerRule, ownerRule, endpointRule,
		removeRule,
	}

	return slices.Concat(own, lint.Rules(), audit.Rules())
}
