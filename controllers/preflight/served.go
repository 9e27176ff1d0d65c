package preflight

import (
	"context"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/problem"
)

// ClusterCRD is the name of the CustomResourceDefinition whose versions say which contracts core still works with: a
// provider of a contract reads Clusters in the version of that name.
const ClusterCRD = "clusters.cluster.x-k8s.io"

// Served checks whether a provider's version with the contract may run with a core that serves Clusters in these
// versions; none if they are unknown, such as before core is installed.
func (*Checker) Served(provider v1alpha2.Provider, contract string, served []string) error {
	if contract == "" || len(served) == 0 || slices.Contains(served, contract) || provider.GetSpec().Paused {
		return nil
	}

	return problem.Await(v1alpha2.CAPIVersionIncompatibilityReason,
		"this version has the Cluster API contract %s, but core serves Clusters as %s only; "+
			"choose a version with another contract", contract, strings.Join(served, " and "))
}

// CoreServed checks a change of core that changes the served versions of Clusters. It fails if an installed provider
// needs a version that is removed, or could be rolled back to a version that needs it.
func (c *Checker) CoreServed(ctx context.Context, core v1alpha2.Provider, before, after []string) error {
	gone := slices.DeleteFunc(SupportedContracts(contractOf(core)), func(contract string) bool {
		return !slices.Contains(before, contract) || slices.Contains(after, contract)
	})
	if len(gone) == 0 || len(after) == 0 {
		return nil
	}

	others, err := c.others(ctx, core)
	if err != nil {
		return err
	}

	for _, p := range others {
		contract := contractOf(p)

		switch {
		case !slices.Contains(gone, contract):
		case StandingOf(p).Changing:
			return comesFirst(p, v1alpha2.CAPIVersionIncompatibilityReason)
		default:
			return problem.Await(v1alpha2.CAPIVersionIncompatibilityReason,
				"this version of core does not serve Clusters as %s, but %s has that contract; %s",
				contract, v1alpha2.FullName(p), changeFirst(p))
		}
	}

	return mayReturn(others)
}
