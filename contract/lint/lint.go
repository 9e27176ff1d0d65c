// Package lint checks what a provider publishes against the rules of the Cluster API contracts that
// can be checked on files: that of clusterctl, and those of the kinds of providers, v1beta1 and v1beta2.
// It needs no cluster, runs nothing, and changes nothing.
package lint

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/contract"
)

// rule is a rule with its check.
type rule struct {
	contract.Rule

	check func(*parsedBundle, reporter)
}

// location is where a rule is broken.
type location struct {
	file, kind, object string
	// contract is the URL of the requirement, or empty for that of the rule.
	contract string
}

// reporter records a finding of the rule that is being checked.
type reporter func(at location, format string, args ...any)

func rules() []rule {
	return slices.Concat(fileRules, componentRules, variableRules, referenceRules, crdRules, controlPlaneRules,
		contractRules(), templateRules, templateLinkRules)
}

// Rules returns all rules, grouped by area.
func Rules() []contract.Rule {
	var all []contract.Rule //nolint:prealloc // the number of rules is that of rules()

	for _, r := range rules() {
		all = append(all, r.Rule)
	}

	return all
}

// Bundle checks a bundle against all rules.
//
// The components are those of the bundle, as returned by bundle.ParseComponents. If they are nil, Bundle parses them
// and reports errors as findings.
func Bundle(b *bundle.Bundle, components *bundle.Components) []contract.Finding {
	p := newParsedBundle(b, components)

	var findings []contract.Finding

	for _, r := range rules() {
		r.check(p, func(at location, format string, args ...any) {
			findings = append(findings, r.finding(at, fmt.Sprintf(format, args...)))
		})
	}

	contract.Sort(findings)

	return findings
}

func (r rule) finding(at location, message string) contract.Finding {
	f := r.Finding(message)
	f.File, f.Kind, f.Object = at.file, at.kind, at.object
	f.Contract = cmp.Or(at.contract, r.Contract)

	return f
}
