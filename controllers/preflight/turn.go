package preflight

import (
	"cmp"
	"context"
	"slices"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/problem"
)

// Turn checks whether it is the turn of a provider to change to another version, which has the contract, when
// several providers change at the same time: core comes first. Only if core's new contract works with fewer
// contracts than the old one does it come last: the others can then still return to their last versions.
func (c *Checker) Turn(ctx context.Context, provider v1alpha2.Provider, contract string) error {
	if provider.ProviderType() == v1alpha2.CoreProviderType {
		return c.turnOfCore(ctx, provider, contract)
	}

	core, err := c.Core(ctx, provider)
	if err != nil || core == nil || !StandingOf(core).Changing {
		return err
	}

	return comesFirst(core, v1alpha2.WaitingForCoreProviderReadyReason)
}

// turnOfCore checks whether core may change to a version with the contract. That the contracts fit is checked
// by Contract.
func (c *Checker) turnOfCore(ctx context.Context, core v1alpha2.Provider, contract string) error {
	if !narrows(contractOf(core), contract) {
		return nil
	}

	others, err := c.others(ctx, core)
	if err != nil {
		return err
	}

	return mayReturn(others)
}

// mayReturn checks that none of the providers may have to return to a version that core may not work with.
func mayReturn(providers []v1alpha2.Provider) error {
	for _, p := range providers {
		if !StandingOf(p).MayReturn {
			continue
		}

		return problem.Await(v1alpha2.CAPIVersionIncompatibilityReason,
			"waiting until %s is healthy with %s: until then it may have to return to %s, "+
				"which this version of core may not work with",
			v1alpha2.FullName(p), newestVersion(p), *p.GetStatus().InstalledVersion)
	}

	return nil
}

// comesFirst returns the error of a provider that waits until another one has changed its version.
func comesFirst(other v1alpha2.Provider, reason string) error {
	return problem.Await(reason,
		"waiting until %s has changed from %s to %s, which comes first",
		v1alpha2.FullName(other), *other.GetStatus().InstalledVersion,
		cmp.Or(wantedVersion(other), other.GetSpec().Version, "another version"))
}

// narrows reports whether core with the contract after does not work with a contract that it works with
// before.
func narrows(before, after string) bool {
	return slices.ContainsFunc(supportedContracts[before], func(provider string) bool {
		return !compatible(after, provider)
	})
}
