package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/capstan-project/capstan/api/v1alpha2"
	providerplan "github.com/capstan-project/capstan/controllers/plan"
	"github.com/capstan-project/capstan/controllers/preflight"
)

// installed is a provider as it is, and what its source offers, newest first.
type installed struct {
	Label, Version, Contract string
	offers                   []providerplan.Version
}

// plan is the way to a contract.
type plan struct {
	// Contract that core has afterwards.
	Contract string `json:"contract"`
	// Steps in their order; providers that stay as they are among them.
	Steps []step `json:"steps"`
	// Blocked says why the way is closed; empty if it is open.
	Blocked string `json:"blocked,omitempty"`
}

// step is what is to be done with a provider.
type step struct {
	Provider string `json:"provider"`
	From     string `json:"from"`
	// To is the version to upgrade to; empty if there is none that is newer.
	To string `json:"to,omitempty"`
	// Contract that the provider has afterwards.
	Contract string `json:"contract"`
}

func (i installed) core() bool { return i.Label == v1alpha2.CoreProviderName }

// makePlans makes a plan for each contract that core has or can have; without a core, that any
// provider has or can have. Providers come in clusterctl's order of installation, core first.
func makePlans(all []installed) []plan {
	hasCore := slices.ContainsFunc(all, installed.core)
	contracts := map[string]bool{}

	for _, provider := range all {
		if hasCore && !provider.core() {
			continue
		}

		contracts[provider.Contract] = true
		for _, offer := range provider.newer() {
			contracts[offer.Contract] = true
		}
	}

	plans := make([]plan, 0, len(contracts))
	for _, contract := range slices.Sorted(maps.Keys(contracts)) {
		plans = append(plans, makePlan(all, contract))
	}

	return plans
}

// makePlan takes every provider to its newest version that a core of the contract works with. Core
// itself has that contract.
func makePlan(all []installed, contract string) plan {
	p := plan{Contract: contract}

	var left []string

	for _, provider := range all {
		fits := preflight.SupportedContracts(contract)
		if provider.core() {
			fits = []string{contract}
		}

		s := step{Provider: provider.Label, From: provider.Version, Contract: provider.Contract}
		for _, offer := range provider.newer() {
			if slices.Contains(fits, offer.Contract) {
				s.To, s.Contract = offer.Version, offer.Contract
				break
			}
		}

		if !slices.Contains(fits, s.Contract) {
			left = append(left, provider.Label)
		}

		p.Steps = append(p.Steps, s)
	}

	if len(left) > 0 {
		p.Blocked = fmt.Sprintf(
			"there is no version of %s that works with contract %s of core",
			strings.Join(left, ", "),
			contract,
		)
	}

	return p
}

// newer are the offers beyond what is installed, pre-releases aside, newest first.
func (i installed) newer() []providerplan.Version {
	current, err := semver.NewVersion(i.Version)
	if err != nil {
		return nil
	}

	return slices.DeleteFunc(slices.Clone(i.offers), func(o providerplan.Version) bool {
		v, err := semver.NewVersion(o.Version)
		return err != nil || v.Prerelease() != "" || !v.GreaterThan(current)
	})
}

// upgrades reports whether the plan changes anything.
func (p plan) upgrades() bool {
	return slices.ContainsFunc(p.Steps, func(s step) bool { return s.To != "" })
}

func (p plan) print(s *screen) {
	fmt.Fprintln(s, s.paint(bold, "Contract "+p.Contract))
	rows := make([][]string, 1, len(p.Steps)+1)

	rows[0] = []string{"PROVIDER", "INSTALLED", "UPGRADE TO", "CONTRACT"}
	for _, step := range p.Steps {
		rows = append(rows, []string{step.Provider, step.From, cmp.Or(step.To, "-"), step.Contract})
	}

	s.table(rows, func(row, column int) style {
		switch {
		case row == 0:
			return bold
		case column == 2 && p.Steps[row-1].To != "":
			return green
		default:
			return plain
		}
	})

	switch {
	case p.Blocked != "":
		fmt.Fprintln(s, s.paint(red, "Not possible: "+p.Blocked+"."))
	case !p.upgrades():
		fmt.Fprintln(s, "All providers have their newest version of this contract.")
	default:
		fmt.Fprintf(s, "To upgrade them in this order: capstan upgrade apply --contract %s\n", p.Contract)
	}
}
