package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/ranges"
	"github.com/capstan-project/capstan/controllers/problem"
)

// supportedContracts maps the Cluster API contract of core to the contracts of the providers that
// it works with. It is the same as clusterctl's.
var supportedContracts = map[string][]string{
	"v1beta1": {"v1beta1"},
	"v1beta2": {"v1beta1", "v1beta2"},
}

// SupportedContracts returns the contracts of the providers that work with a core of the given
// contract.
func SupportedContracts(core string) []string { return slices.Clone(supportedContracts[core]) }

// compatible reports whether a core of one contract works with a provider of another.
func compatible(core, provider string) bool {
	return slices.Contains(supportedContracts[core], provider)
}

// Contracts checks whether a version with the contract may run beside the other providers: now, and if
// the provider is paused no longer.
func (c *Checker) Contracts(ctx context.Context, provider v1alpha2.Provider, contract string) error {
	if err := c.Contract(ctx, provider, contract); err != nil {
		return err
	}

	return c.Unpause(ctx, provider, contract)
}

// Contract checks whether a version with the contract works with core or, if the provider is core,
// with all other providers. A revision of another program may have no contract.
//
// Paused providers do not run. That allows a change of contract while all providers are paused, one
// provider at a time.
func (c *Checker) Contract(ctx context.Context, provider v1alpha2.Provider, contract string) error {
	isCore := provider.ProviderType() == v1alpha2.CoreProviderType
	if contract == "" && !isCore {
		return nil
	}

	if supportedContracts[contract] == nil {
		return problem.Refuse(v1alpha2.CAPIVersionIncompatibilityReason,
			"this version has the unsupported Cluster API contract %q; choose a version with v1beta1 or v1beta2",
			contract)
	}

	if isCore {
		return c.coreContract(ctx, provider, contract)
	}

	core, err := c.Core(ctx, provider)
	if err != nil {
		return err
	}

	has := contractOf(core)
	if has == "" || compatible(has, contract) || provider.GetSpec().Paused {
		return nil
	}

	if StandingOf(core).Changing {
		return comesFirst(core, v1alpha2.CAPIVersionIncompatibilityReason)
	}

	return problem.Await(v1alpha2.CAPIVersionIncompatibilityReason,
		"this version has the Cluster API contract %s, and core %s works with %s only; "+
			"choose another version, or upgrade core",
		contract, has, strings.Join(supportedContracts[has], " and "))
}

// coreContract checks a contract of core against the installed providers. While all of them and
// core are paused, core may have any contract.
func (c *Checker) coreContract(ctx context.Context, core v1alpha2.Provider, contract string) error {
	others, err := c.others(ctx, core)
	if err != nil {
		return err
	}

	incompatible := firstIncompatible(contract, others)
	if incompatible == nil {
		return nil
	}

	allPaused := !slices.ContainsFunc(others, func(p v1alpha2.Provider) bool { return runs(p) && !paused(p) })
	if allPaused && core.GetSpec().Paused {
		return nil
	}

	if StandingOf(incompatible).Changing {
		return comesFirst(incompatible, v1alpha2.CAPIVersionIncompatibilityReason)
	}

	return problem.Await(v1alpha2.CAPIVersionIncompatibilityReason,
		"this version of core has the Cluster API contract %s, but %s has %s; %s",
		contract, v1alpha2.FullName(incompatible), contractOf(incompatible), changeFirst(incompatible))
}

// changeFirst says what to do about a provider that keeps core from changing.
func changeFirst(p v1alpha2.Provider) string {
	installed, wanted := p.GetStatus().InstalledVersion, wantedVersion(p)
	if installed == nil || wanted == "" || ranges.IsSame(wanted, *installed) {
		return "change that provider first, or pause all providers with spec.paused, upgrade them, and unpause them"
	}

	return fmt.Sprintf("its change from %s to %s has not succeeded, and its condition %s says why; "+
		"core follows once it has", *installed, wanted, v1alpha2.ReadyCondition)
}

// Unpause checks whether a paused provider may run again: only if the contracts of all providers
// work with core's. It passes for providers that stay paused, or are not.
func (c *Checker) Unpause(ctx context.Context, provider v1alpha2.Provider, contract string) error {
	if provider.GetSpec().Paused || !StandingOf(provider).Paused {
		return nil
	}

	core := contract

	if provider.ProviderType() != v1alpha2.CoreProviderType {
		installed, err := c.Core(ctx, provider)
		if core = contractOf(installed); err != nil || core == "" {
			return err
		}
	}

	others, err := c.others(ctx, provider)
	if err != nil {
		return err
	}

	incompatible := firstIncompatible(core, others)
	if incompatible == nil {
		return nil
	}

	return problem.Await(v1alpha2.CAPIVersionIncompatibilityReason,
		"this provider stays paused while %s has the Cluster API contract %s, which core %s does not work with; "+
			"upgrade that provider first",
		v1alpha2.FullName(incompatible), contractOf(incompatible), core)
}

// contractOf returns the contract of an installed provider; empty if there is none.
func contractOf(p v1alpha2.Provider) string {
	if p == nil {
		return ""
	}

	return StandingOf(p).Contract
}

// firstIncompatible returns the first installed provider that a core of the contract does not work
// with; nil if there is none.
func firstIncompatible(core string, providers []v1alpha2.Provider) v1alpha2.Provider {
	for _, p := range providers {
		if contract := contractOf(p); contract != "" && !compatible(core, contract) {
			return p
		}
	}

	return nil
}

// runs reports whether something of the provider may run. A resource that was never installed has no
// say in what core does.
func runs(p v1alpha2.Provider) bool { return isInstalled(p) || contractOf(p) != "" }

// paused reports whether the provider's Deployments are known to be scaled down.
func paused(p v1alpha2.Provider) bool {
	return p.GetSpec().Paused && StandingOf(p).Paused
}
