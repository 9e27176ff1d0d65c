package audit

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/version"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/crds/versions"
)

// The pages of the contracts.
const (
	contracts               = "https://cluster-api.sigs.k8s.io/developer/providers/contracts/"
	clusterctlContract      = contracts + "clusterctl"
	infraClusterContract    = contracts + "infra-cluster"
	infraMachineContract    = contracts + "infra-machine"
	controlPlaneContract    = contracts + "control-plane"
	bootstrapConfigContract = contracts + "bootstrap-config"
	ownerReferencesPage     = "https://cluster-api.sigs.k8s.io/reference/api/owner-references"
)

// The versions of the contracts, newest first.
const (
	v1beta2 = "v1beta2"
	v1beta1 = "v1beta1"
)

var contractVersions = []string{v1beta2, v1beta1}

// contractLabel returns the label of a CRD that lists the versions which implement a contract.
func contractLabel(contract string) string { return clusterv1.GroupVersion.Group + "/" + contract }

// toolGroups are the API groups of programs that manage providers.
var toolGroups = []string{"clusterctl.cluster.x-k8s.io", v1alpha2.GroupVersion.Group}

// Relevant reports whether a CRD belongs to a provider: by clusterctl's labels, or, as they may be missing,
// by its API group.
func Relevant(crd *apiextensionsv1.CustomResourceDefinition) bool {
	group := crd.Spec.Group
	if slices.Contains(toolGroups, group) {
		return false
	}

	_, labeled := crd.Labels[v1alpha2.ClusterctlLabel]

	return labeled || crd.Labels[v1alpha2.ClusterctlProviderLabel] != "" ||
		group == clusterv1.GroupVersion.Group || strings.HasSuffix(group, "."+clusterv1.GroupVersion.Group)
}

// CoreContract returns the newest contract of core among the CRDs, and the newest one of all without core.
func CoreContract(crds []*apiextensionsv1.CustomResourceDefinition) string {
	for _, crd := range crds {
		if crd.Spec.Group != clusterv1.GroupVersion.Group || crd.Spec.Names.Kind != clusterv1.ClusterKind {
			continue
		}

		if contract := contractOf(crd, v1beta2); contract != "" {
			return contract
		}
	}

	return v1beta2
}

// contractOf returns the contract that core, which has a contract itself, uses for a CRD: the newest one
// that both have. It is empty if there is none.
func contractOf(crd *apiextensionsv1.CustomResourceDefinition, core string) string {
	for _, contract := range contractVersions[slices.Index(contractVersions, core):] {
		if crd.Labels[contractLabel(contract)] != "" {
			return contract
		}
	}

	return ""
}

// contractVersion returns the version of a CRD that core uses for a contract: the newest one in the label,
// whether it is served or not.
func contractVersion(crd *apiextensionsv1.CustomResourceDefinition, contract string) string {
	return slices.MaxFunc(strings.Split(crd.Labels[contractLabel(contract)], "_"), version.CompareKubeAwareVersionStrings)
}

// ReadVersion returns the version in which core, which has a contract itself, reads the objects of a CRD:
// the newest one that implements the contract. If that is not served, it returns a version that is, and an empty
// text if none is.
func ReadVersion(crd *apiextensionsv1.CustomResourceDefinition, core string) string {
	if contract := contractOf(crd, core); contract != "" {
		if v := versions.Find(crd, contractVersion(crd, contract)); v != nil && v.Served {
			return v.Name
		}
	}

	if v := versions.Preferred(crd); v != nil {
		return v.Name
	}

	return ""
}
