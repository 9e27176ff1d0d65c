package audit

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/contract"
	"github.com/capstan-project/capstan/controllers/crds/versions"
)

// The pages of the contracts.
const (
	infraClusterContract    = contract.Pages + "infra-cluster"
	infraMachineContract    = contract.Pages + "infra-machine"
	controlPlaneContract    = contract.Pages + "control-plane"
	bootstrapConfigContract = contract.Pages + "bootstrap-config"
	ownerReferencesPage     = "https://cluster-api.sigs.k8s.io/reference/api/owner-references"
)

// The versions of the contracts.
const (
	v1beta2 = "v1beta2"
	v1beta1 = "v1beta1"
)

// toolGroups are the API groups of programs that manage providers.
var toolGroups = []string{"clusterctl.cluster.x-k8s.io", v1alpha2.GroupVersion.Group}

// relevant reports whether a CRD belongs to a provider: by clusterctl's labels, or, as they may be missing,
// by its API group.
func relevant(crd *apiextensionsv1.CustomResourceDefinition) bool {
	if slices.Contains(toolGroups, crd.Spec.Group) {
		return false
	}

	_, labeled := crd.Labels[v1alpha2.ClusterctlLabel]

	return labeled || crd.Labels[v1alpha2.ClusterctlProviderLabel] != "" || inGroup(crd)
}

// inGroup reports whether the API group of a CRD is Cluster API's, or one below it.
func inGroup(crd *apiextensionsv1.CustomResourceDefinition) bool {
	group := crd.Spec.Group
	return group == clusterv1.GroupVersion.Group || strings.HasSuffix(group, "."+clusterv1.GroupVersion.Group)
}

// coreContract returns the newest contract of core among the CRDs, and the newest one of all without core.
func coreContract(crds []*apiextensionsv1.CustomResourceDefinition) string {
	for _, crd := range crds {
		if crd.Spec.Group != clusterv1.GroupVersion.Group || crd.Spec.Names.Kind != clusterv1.ClusterKind {
			continue
		}

		if own, _ := contract.Implementation(crd.Labels, v1beta2); own != "" {
			return own
		}
	}

	return v1beta2
}

// ReadVersion returns the version in which core reads the objects of a CRD: the newest version that implements core's
// contract. If that is not served, it returns another served version; empty if there is none.
func ReadVersion(crd *apiextensionsv1.CustomResourceDefinition, core string) string {
	_, name := contract.Implementation(crd.Labels, core)
	if v := versions.Find(crd, name); v != nil && v.Served {
		return v.Name
	}

	if v := versions.Preferred(crd); v != nil {
		return v.Name
	}

	return ""
}
