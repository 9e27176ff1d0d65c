package preflight

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/supply/ranges"
	"github.com/capstan-project/capstan/controllers/release/state"
)

// Turn checks whether it is the turn of a provider to change to another version, which has the contract, when
// several providers change at the same time: core comes first. Only if core's new contract works with fewer
// contracts than the old one does it come last: the others can then still return to their last versions. Plain Helm
// charts, which have no contract, have no order.
func (c *Checker) Turn(ctx context.Context, provider v1alpha2.Provider, contract string) error {
	if provider.ProviderType() == v1alpha2.CoreProviderType {
		return c.turnOfCore(ctx, provider, contract)
	}

	if contract == "" {
		return nil
	}

	core, err := c.Core(ctx, provider)
	if err != nil || core == nil || !ChangesVersion(core) {
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

	for _, p := range others {
		if !MayReturn(p) {
			continue
		}

		return &Error{
			Reason:  v1alpha2.CAPIVersionIncompatibilityReason,
			Waiting: true,
			Message: fmt.Sprintf("waiting until %s is healthy with %s: until then it may have to return to %s, "+
				"which this version of core may not work with",
				v1alpha2.FullName(p), newestVersion(p), *p.GetStatus().InstalledVersion),
		}
	}

	return nil
}

// newestVersion returns the version of the newest revision of a provider's release; empty if there is none.
func newestVersion(p v1alpha2.Provider) string {
	if history := p.GetStatus().History; len(history) > 0 {
		return history[0].Version
	}

	return ""
}

// MayReturn reports whether the newest revision of a provider has another version than the one that was healthy
// last, which it may have to return to.
func MayReturn(p v1alpha2.Provider) bool {
	newest, healthy := newestVersion(p), p.GetStatus().InstalledVersion
	return newest != "" && healthy != nil && newest != *healthy
}

// KeepsVersion reports whether a provider runs the version that was healthy last although its resource asks for
// another one: the change cannot begin yet, or has failed and was rolled back.
func KeepsVersion(p v1alpha2.Provider) bool {
	status := p.GetStatus()
	if status.InstalledVersion == nil || sameVersion(wantedVersion(p), *status.InstalledVersion) {
		return false
	}

	return newestVersion(p) == *status.InstalledVersion && status.History[0].Status == string(state.StatusDeployed)
}

// comesFirst returns the error of a provider that waits until another one has changed its version.
func comesFirst(other v1alpha2.Provider, reason string) error {
	return &Error{
		Reason:  reason,
		Waiting: true,
		Message: fmt.Sprintf("waiting until %s has changed from %s to %s, which comes first",
			v1alpha2.FullName(other), *other.GetStatus().InstalledVersion,
			cmp.Or(wantedVersion(other), other.GetSpec().Version, "another version")),
	}
}

// narrows reports whether core with the contract after does not work with a contract that it works with
// before.
func narrows(before, after string) bool {
	return slices.ContainsFunc(supportedContracts[before], func(provider string) bool {
		return !compatible(after, provider)
	})
}

// ChangesVersion reports whether an installed provider is going to run another version that its resource asks
// for, so that others wait for it: the change has not begun, or the new version is not healthy yet. It is false
// once the change has failed, or waits for a user or for the contracts of other providers.
func ChangesVersion(p v1alpha2.Provider) bool {
	spec, status := p.GetSpec(), p.GetStatus()
	rollsBack := spec.Release != nil && spec.Release.RollbackTo != nil

	switch {
	case !isInstalled(p), status.InstalledVersion == nil, !stays(p), spec.Suspend, rollsBack:
		return false
	case sameVersion(wantedVersion(p), *status.InstalledVersion):
		return false
	case p.GetGeneration() != status.ObservedGeneration:
		return true
	case conditions.IsReady(p), conditions.IsStalled(p):
		return false
	}

	upgraded := conditions.Get(p, v1alpha2.ProviderUpgradedCondition)
	failed := conditions.IsFalse(p, v1alpha2.ProviderUpgradedCondition) && upgraded.ObservedGeneration == p.GetGeneration()

	return !failed && conditions.GetReason(p, v1alpha2.ReadyCondition) != v1alpha2.CAPIVersionIncompatibilityReason
}

// wantedVersion returns the version that a resource asks for; empty if it has to be chosen from several.
func wantedVersion(p v1alpha2.Provider) string {
	return ranges.Only(p.GetSpec().Version, p.GetStatus().DesiredVersion)
}

// sameVersion compares versions, which may lack the "v".
func sameVersion(a, b string) bool { return strings.TrimPrefix(a, "v") == strings.TrimPrefix(b, "v") }
