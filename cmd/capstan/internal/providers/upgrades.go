package providers

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/ranges"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
	"github.com/capstan-project/capstan/controllers/offers"
	"github.com/capstan-project/capstan/controllers/preflight"
)

// installedProvider is what plans need to know of a provider.
type installedProvider struct {
	resource v1alpha2.Provider
	// Resource is its full name, and Cluster identifies where it is installed; empty for the cluster of the resource.
	Resource, Cluster string
	// KubeConfig is the Secret by which a remote cluster is reached, as namespace/name.
	KubeConfig string
	// Label is clusterctl's, for example "infrastructure-aws".
	Label, Version, Contract string
	// Available are the versions that the provider's source has, newest first.
	Available []v1alpha2.AvailableUpgrade
	// unread is why the source could not be read; nil if it was.
	unread error
}

// upgradePlan upgrades all providers in a cluster to a contract.
type upgradePlan struct {
	// KubeConfig is the Secret by which a remote cluster is reached, as namespace/name; empty for the local one.
	KubeConfig string `json:"kubeConfig,omitempty"`
	// Contract of core after the upgrade.
	Contract string `json:"contract"`
	// Steps are in the order of execution. There is one for every provider, whether it changes or
	// not.
	Steps []upgradeStep `json:"steps"`
	// Blocked is why the plan cannot be executed; empty if it can.
	Blocked string `json:"blocked,omitempty"`
}

// upgradeStep upgrades one provider.
type upgradeStep struct {
	Provider string `json:"provider"`
	// Resource is the full name of the provider's resource.
	Resource string `json:"-"`
	From     string `json:"from"`
	// To is the version after the upgrade; empty if there is no newer one.
	To string `json:"to,omitempty"`
	// Contract of the provider after the upgrade.
	Contract string `json:"contract"`
	// SkippedMinors are the minor versions between the two that the source offers, such as "v1.26", oldest first.
	SkippedMinors []string `json:"skippedMinors,omitempty"`
	// Unknown is why it is not known which versions there are; empty if it is.
	Unknown string `json:"unknown,omitempty"`
	// DroppedCRDs are those of the installed version that the other one does not include, and Findings are what would
	// be left of their objects.
	DroppedCRDs []string `json:"droppedCRDs,omitempty"`
	Findings    []string `json:"findings,omitempty"`
}

// byCluster groups providers by the cluster that they are installed into, the local one first. Each cluster has a core
// of its own.
func byCluster(providers []*installedProvider) [][]*installedProvider {
	sorted := slices.Clone(providers)
	slices.SortStableFunc(sorted, func(a, b *installedProvider) int { return strings.Compare(a.Cluster, b.Cluster) })

	var groups [][]*installedProvider

	for i, p := range sorted {
		if i == 0 || p.Cluster != sorted[i-1].Cluster {
			groups = append(groups, nil)
		}

		groups[len(groups)-1] = append(groups[len(groups)-1], p)
	}

	return groups
}

// planUpgrades returns the plans for all clusters.
func planUpgrades(providers []*installedProvider) []upgradePlan {
	groups := byCluster(providers)
	plans := make([]upgradePlan, 0, len(groups))

	for _, group := range groups {
		plans = append(plans, planCluster(group)...)
	}

	return plans
}

// planCluster returns a plan for each contract that the core of a cluster has or can have. Without core these are the
// contracts that any provider has or can have. Providers must be in clusterctl's order of
// installation, core first.
func planCluster(providers []*installedProvider) []upgradePlan {
	hasCore := slices.ContainsFunc(providers, (*installedProvider).isCore)
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

	return cli.Map(slices.Sorted(maps.Keys(contracts)), func(contract string) upgradePlan {
		return forContract(providers, contract)
	})
}

// forContract upgrades every provider to its newest version that works with a core of the contract.
func forContract(providers []*installedProvider, contract string) upgradePlan {
	upgrades := upgradePlan{KubeConfig: providers[0].KubeConfig, Contract: contract}

	for _, p := range providers {
		compatible := p.compatible(contract)
		upgrades.add(p, func(v v1alpha2.AvailableUpgrade) bool { return slices.Contains(compatible, v.Contract) })
	}

	if incompatible := upgrades.incompatible(); len(incompatible) > 0 {
		upgrades.Blocked = fmt.Sprintf("no known version of %s works with contract %s of core",
			strings.Join(incompatible, ", "), contract)
	}

	return upgrades
}

// planVersion upgrades every provider in a cluster to its newest version that is, or is in the range of, the requested
// one, if it has one that is newer than what is installed. The error is a *ranges.Error.
func planVersion(providers []*installedProvider, requested string) (upgradePlan, error) {
	matches, err := ranges.Parse(requested)
	if err != nil {
		return upgradePlan{}, err
	}

	upgrades := upgradePlan{KubeConfig: providers[0].KubeConfig}

	for _, p := range providers {
		step := upgrades.add(p, func(v v1alpha2.AvailableUpgrade) bool {
			version, err := semver.NewVersion(v.Version)
			return err == nil && matches(version)
		})

		if p.isCore() {
			upgrades.Contract = step.Contract
		}
	}

	if incompatible := upgrades.incompatible(); upgrades.Contract != "" && len(incompatible) > 0 {
		upgrades.Blocked = fmt.Sprintf("the contract of %s would not work with contract %s of core",
			strings.Join(incompatible, ", "), upgrades.Contract)
	}

	return upgrades, nil
}

// add adds the upgrade of a provider to its newest version that is wanted, and returns it.
func (p *upgradePlan) add(provider *installedProvider, wanted func(v1alpha2.AvailableUpgrade) bool) upgradeStep {
	step := upgradeStep{
		Provider: provider.Label, Resource: provider.Resource, From: provider.Version, Contract: provider.Contract,
	}
	if provider.unread != nil {
		step.Unknown = provider.unread.Error()
	}

	newer := provider.newer()
	if i := slices.IndexFunc(newer, wanted); i >= 0 {
		step.To, step.Contract = newer[i].Version, newer[i].Contract
		step.SkippedMinors = offers.SkippedMinors(step.From, step.To, provider.minors())
	}

	p.Steps = append(p.Steps, step)

	return step
}

// incompatible returns the labels of the providers whose contract does not work with core's after the upgrade.
func (p upgradePlan) incompatible() []string {
	var labels []string

	for _, step := range p.Steps {
		compatible := (&installedProvider{Label: step.Provider}).compatible(p.Contract)
		if !slices.Contains(compatible, step.Contract) {
			labels = append(labels, step.Provider)
		}
	}

	return labels
}

// in names the cluster of a plan after other words; empty for the local one.
func (p upgradePlan) in() string {
	if p.KubeConfig == "" {
		return ""
	}

	return " in the cluster of Secret " + p.KubeConfig
}

// Upgrades reports whether the plan changes any provider.
func (p upgradePlan) Upgrades() bool {
	return slices.ContainsFunc(p.Steps, func(s upgradeStep) bool { return s.To != "" })
}

// newer returns the versions that are newer than the installed one, newest first.
func (p *installedProvider) newer() []v1alpha2.AvailableUpgrade {
	return offers.Newer(p.Available, p.Version)
}

// minors returns versions of all minor versions that the provider's source has.
func (p *installedProvider) minors() []*semver.Version {
	return cli.Map(p.newer(), func(v v1alpha2.AvailableUpgrade) *semver.Version { return semver.MustParse(v.Version) })
}

func (p *installedProvider) isCore() bool { return p.Label == v1alpha2.CoreProviderName }

// compatible returns the contracts of versions of the provider that work with a core of a contract.
func (p *installedProvider) compatible(core string) []string {
	if p.isCore() {
		return []string{core}
	}

	return preflight.SupportedContracts(core)
}
