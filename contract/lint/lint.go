// Package lint checks the published files of a provider against the contracts of Cluster API: the contract of
// clusterctl, and v1beta1 and v1beta2 for the kinds of providers. It needs no cluster, runs nothing, and changes
// nothing.
package lint

import (
	"slices"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/contract"
)

type (
	rule     = contract.Rule[*parsedBundle]
	place    = contract.Place
	reporter = contract.Reporter
)

// Rules returns all rules, grouped by area.
func Rules() []contract.Rule[*parsedBundle] {
	return slices.Concat(fileRules, componentRules, variableRules, referenceRules, crdRules, controlPlaneRules,
		contractRules(), templateRules, templateLinkRules)
}

// Bundle checks a bundle against all rules.
//
// The components are those of the bundle, as returned by bundle.ParseComponents. If they are nil, Bundle parses them
// and reports errors as findings.
func Bundle(b *bundle.Bundle, components *bundle.Components) []contract.Finding {
	return contract.Check(Rules(), newParsedBundle(b, components))
}
