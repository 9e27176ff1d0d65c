// Package lint checks what a provider publishes against the rules of the Cluster API contracts that
// can be checked on files: that of clusterctl, and those of the kinds of providers, v1beta1 and v1beta2.
// It needs no cluster, runs nothing, and changes nothing.
package lint

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/capstan-project/capstan/chartgen/bundle"
)

// Level is the severity of a rule.
type Level string

// The levels, most severe first.
const (
	// Error is for what a contract requires and without which something fails: clusterctl, the API
	// server, or Cluster API's core.
	Error Level = "error"
	// Warning is for what works today but is likely to cause trouble.
	Warning Level = "warning"
	// Info is for advice.
	Info Level = "info"
)

// Rule is one requirement of a contract. Its texts are complete sentences.
type Rule struct {
	// Name is "<area>/<rule>", for example "components/manager".
	Name  string
	Level Level
	// Contract is the URL of the section that contains the requirement.
	Contract string
	// Requirement is what the contract requires.
	Requirement string
	// Why is what happens if the rule is broken.
	Why string
	// Remedy is what the provider's authors can do.
	Remedy string

	check func(*parsedBundle, reporter)
}

// Finding is one place where a rule is broken, in a published file or in a cluster.
type Finding struct {
	Rule  string `json:"rule"`
	Level Level  `json:"level"`
	// Kind and Object identify the object. Both are empty if the finding concerns a whole file.
	Kind   string `json:"kind,omitempty"`
	Object string `json:"object,omitempty"`
	// File is the name of the published file. For the components it is bundle.ComponentsFile,
	// whatever name they were published under. It is empty for an object in a cluster.
	File    string `json:"file,omitempty"`
	Message string `json:"message"`
	// Contract is the URL of the section that contains the requirement.
	Contract string `json:"contract"`
	Why      string `json:"why"`
	Remedy   string `json:"remedy"`
}

// location is where a rule is broken.
type location struct {
	file, kind, object string
	// contract is the URL of the requirement, or empty for that of the rule.
	contract string
}

// reporter records a finding of the rule that is being checked.
type reporter func(at location, format string, args ...any)

// Rules returns all rules, grouped by area.
func Rules() []Rule {
	return slices.Concat(fileRules, componentRules, variableRules, referenceRules, crdRules, controlPlaneRules,
		contractRules(), templateRules, templateLinkRules)
}

// Bundle checks a bundle against all rules. The findings are sorted by file, object, and rule.
//
// The components are those of the bundle, as returned by bundle.ParseComponents. If they were
// parsed without the schemas of CRDs, the rules about fields of control planes do not apply. If
// they are nil, Bundle parses them and reports errors as findings.
func Bundle(b *bundle.Bundle, components *bundle.Components) []Finding {
	p := newParsedBundle(b, components)

	var findings []Finding

	for _, rule := range Rules() {
		rule.check(p, func(at location, format string, args ...any) {
			findings = append(findings, rule.finding(at, fmt.Sprintf(format, args...)))
		})
	}

	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File),
			cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Object, b.Object),
			cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.Message, b.Message),
		)
	})

	return findings
}

func (rule Rule) finding(at location, message string) Finding {
	f := rule.Finding(message)
	f.File, f.Kind, f.Object = at.file, at.kind, at.object
	f.Contract = cmp.Or(at.contract, rule.Contract)

	return f
}

// Finding returns a finding of the rule without its place.
func (rule Rule) Finding(message string) Finding {
	return Finding{
		Rule:     rule.Name,
		Level:    rule.Level,
		Message:  message,
		Contract: rule.Contract,
		Why:      rule.Why,
		Remedy:   rule.Remedy,
	}
}

// Count returns the number of findings of a level.
func Count(findings []Finding, level Level) int {
	n := 0

	for _, f := range findings {
		if f.Level == level {
			n++
		}
	}

	return n
}

// Fail reports whether there is a finding of a level, or of a worse one.
func Fail(findings []Finding, level Level) bool {
	return slices.ContainsFunc(levels[:severity(level)+1], func(l Level) bool { return Count(findings, l) > 0 })
}
