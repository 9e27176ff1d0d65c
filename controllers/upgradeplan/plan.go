// Package upgradeplan computes which versions providers can be upgraded to.
package upgradeplan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/supply/ranges"
	"github.com/capstan-project/capstan/controllers/preflight"
)

// Provider is an installed provider.
type Provider struct {
	// Label is clusterctl's, for example "infrastructure-aws".
	Label, Version, Contract string
	// Available are the versions that the provider's source has, newest first.
	Available []Version
	// Unknown is why the source could not be read; empty if it was.
	Unknown string
}

// Version is a version of a provider with its Cluster API contract.
type Version struct {
	Version, Contract string
}

// Plan upgrades all providers to a contract.
type Plan struct {
	// Contract of core after the upgrade.
	Contract string `json:"contract"`
	// Steps are in the order of execution. There is one for every provider, whether it changes or
	// not.
	Steps []Step `json:"steps"`
	// Blocked is why the plan cannot be executed; empty if it can.
	Blocked string `json:"blocked,omitempty"`
}

// Step upgrades one provider.
type Step struct {
	Provider string `json:"provider"`
	From     string `json:"from"`
	// To is the version after the upgrade; empty if there is no newer one.
	To string `json:"to,omitempty"`
	// Contract of the provider after the upgrade.
	Contract string `json:"contract"`
	// Unknown is why it is not known which versions there are; empty if it is.
	Unknown string `json:"unknown,omitempty"`
}

// New returns a plan for each contract that core has or can have. Without core these are the
// contracts that any provider has or can have. Providers must be in clusterctl's order of
// installation, core first.
func New(providers []Provider) []Plan {
	hasCore := slices.ContainsFunc(providers, Provider.isCore)
	contracts := map[string]bool{}

	for _, p := range providers {
		if hasCore && !p.isCore() {
			continue
		}

		contracts[p.Contract] = true

		for _, v := range p.newer() {
			contracts[v.Contract] = true
		}
	}

	plans := make([]Plan, 0, len(contracts))
	for _, contract := range slices.Sorted(maps.Keys(contracts)) {
		plans = append(plans, forContract(providers, contract))
	}

	return plans
}

// forContract upgrades every provider to its newest version that works with a core of the contract.
func forContract(providers []Provider, contract string) Plan {
	plan := Plan{Contract: contract}

	for _, p := range providers {
		compatible := preflight.SupportedContracts(contract)
		if p.isCore() {
			compatible = []string{contract}
		}

		plan.Steps = append(plan.Steps, p.step(func(v Version) bool { return slices.Contains(compatible, v.Contract) }))
	}

	if incompatible := plan.incompatible(); len(incompatible) > 0 {
		plan.Blocked = fmt.Sprintf(
			"no known version of %s works with contract %s of core",
			strings.Join(incompatible, ", "),
			contract,
		)
	}

	return plan
}

// ForVersion upgrades every provider to its newest version that is, or is in the range of, the requested one, if it
// has one that is newer than what is installed. The error is a *ranges.Error.
func ForVersion(providers []Provider, requested string) (Plan, error) {
	matches, err := ranges.Parse(requested)
	if err != nil {
		return Plan{}, err
	}

	var plan Plan

	for _, p := range providers {
		step := p.step(func(v Version) bool {
			version, err := semver.NewVersion(v.Version)
			return err == nil && matches(version)
		})
		plan.Steps = append(plan.Steps, step)

		if p.isCore() {
			plan.Contract = step.Contract
		}
	}

	if incompatible := plan.incompatible(); plan.Contract != "" && len(incompatible) > 0 {
		plan.Blocked = fmt.Sprintf("the contract of %s would not work with contract %s of core",
			strings.Join(incompatible, ", "), plan.Contract)
	}

	return plan, nil
}

// incompatible returns the labels of the providers whose contract does not work with core's after the upgrade.
func (p Plan) incompatible() []string {
	var labels []string

	for _, step := range p.Steps {
		compatible := preflight.SupportedContracts(p.Contract)
		if step.Provider == v1alpha2.CoreProviderName {
			compatible = []string{p.Contract}
		}

		if !slices.Contains(compatible, step.Contract) {
			labels = append(labels, step.Provider)
		}
	}

	return labels
}

// Upgrades reports whether the plan changes any provider.
func (p Plan) Upgrades() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.To != "" })
}

// Unknown returns the labels of the providers of which it is not known which versions there are.
func (p Plan) Unknown() []string {
	var labels []string

	for _, step := range p.Steps {
		if step.Unknown != "" {
			labels = append(labels, step.Provider)
		}
	}

	return labels
}

func (p Provider) isCore() bool { return p.Label == v1alpha2.CoreProviderName }

// step upgrades the provider to its newest version that is wanted.
func (p Provider) step(wanted func(Version) bool) Step {
	step := Step{Provider: p.Label, From: p.Version, Contract: p.Contract, Unknown: p.Unknown}

	for _, v := range p.newer() {
		if wanted(v) {
			step.To = v.Version
			step.Contract = v.Contract

			break
		}
	}

	return step
}

// newer returns the versions that are newer than the installed one, without pre-releases, newest
// first.
func (p Provider) newer() []Version {
	installed, err := semver.NewVersion(p.Version)
	if err != nil {
		return nil
	}

	var newer []Version

	for _, available := range p.Available {
		v, err := semver.NewVersion(available.Version)
		if err == nil && v.Prerelease() == "" && v.GreaterThan(installed) {
			newer = append(newer, available)
		}
	}

	return newer
}
