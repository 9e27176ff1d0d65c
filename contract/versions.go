package contract

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/version"
)

// Pages is the URL of the folder with the pages of the contracts, and Clusterctl that of the contract between providers
// and clusterctl.
const (
	Pages      = "https://cluster-api.sigs.k8s.io/developer/providers/contracts/"
	Clusterctl = Pages + "clusterctl"
)

// LabelPrefix is the prefix of the labels of CRDs that list, by contract, the API versions that implement it:
// cluster.x-k8s.io/v1beta2: v1beta1_v1beta2.
const LabelPrefix = "cluster.x-k8s.io/"

// Versions are the versions of the contracts, newest first. Core works with its own and those after it.
var Versions = []string{"v1beta2", "v1beta1"}

// Implementation returns the contract by which core, which has a contract itself, uses the objects of a CRD with these
// labels, and the name of their API version: the newest one in the label, whether it is served or not. Both are empty
// if the labels list none.
func Implementation(labels map[string]string, core string) (contract, apiVersion string) {
	first := slices.Index(Versions, core)
	if first < 0 {
		return "", ""
	}

	for _, contract := range Versions[first:] {
		if newest := newest(labels[LabelPrefix+contract]); newest != "" {
			return contract, newest
		}
	}

	return "", ""
}

// newest returns the newest of the API versions in a label.
func newest(label string) string {
	if len(label) > validation.LabelValueMaxLength {
		return "" // the API server rejects the CRD
	}

	return slices.MaxFunc(strings.Split(label, "_"), version.CompareKubeAwareVersionStrings)
}
