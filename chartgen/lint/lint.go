// Package lint holds a provider's release against the rules of the Cluster API contracts that can
// be checked on files: clusterctl's provider contract and the contract of control planes, v1beta1
// and v1beta2. It needs no cluster, runs nothing and changes nothing.
package lint

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/capstan-project/capstan/chartgen/bundle"
)

// Level says how bad it is that a rule is broken.
type Level string

// The levels, worst first.
const (
	// Error is for what a contract demands: without it clusterctl, Cluster API's core or the
	// provider itself fails.
	Error Level = "error"
	// Warning is for what works today and will surprise somebody.
	Warning Level = "warning"
	// Info is for advice.
	Info Level = "info"
)

// Rule is one demand of a contract. Its texts are sentences for people.
type Rule struct {
	// Name is "<area>/<rule>", for example "components/manager".
	Name  string
	Level Level
	// Requirement is the number of the project's requirement; empty when only the contract itself
	// has the rule.
	Requirement string
	// Contract is the page and section that demands it.
	Contract string
	// Demand says what has to be so.
	Demand string
	// Why says what happens otherwise.
	Why string
	// Remedy says what the provider's authors can do.
	Remedy string

	check func(*release, reporter)
}

// Finding is one place where a rule is broken.
type Finding struct {
	Rule        string `json:"rule"`
	Level       Level  `json:"level"`
	Requirement string `json:"requirement,omitempty"`
	// Kind and Object name the object; both are empty when a whole file is meant.
	Kind   string `json:"kind,omitempty"`
	Object string `json:"object,omitempty"`
	// File is the published file's name; bundle.ComponentsFile stands for the components, whatever
	// they are called.
	File string `json:"file"`
	// Line is a line of File, from 1; 0 when the whole file is meant.
	Line    int    `json:"line,omitempty"`
	Message string `json:"message"`
	Why     string `json:"why"`
	Remedy  string `json:"remedy"`
}

// place is where a finding points.
type place struct {
	file         string
	line         int
	kind, object string
}

// reporter takes what a check found.
type reporter func(at place, format string, args ...any)

// Rules lists all rules, in the order of their areas.
func Rules() []Rule {
	return slices.Concat(fileRules, componentRules, referenceRules, crdRules, controlPlaneRules, templateRules)
}

// Bundle checks a bundle and returns what it found in a stable order: by file and line, then by
// rule. The components are b's own, as bundle.ParseComponents gives them; when they were read
// without the schemas of CRDs, the rules about fields of control planes are left out. When they are
// nil, Bundle parses them and reports what is wrong with them.
func Bundle(b *bundle.Bundle, c *bundle.Components) []Finding {
	r := newRelease(b, c)

	var findings []Finding

	for _, rule := range Rules() {
		rule.check(r, func(at place, format string, args ...any) {
			findings = append(findings, rule.finding(at, fmt.Sprintf(format, args...)))
		})
	}

	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.Message, b.Message),
		)
	})

	return findings
}

func (rule Rule) finding(at place, message string) Finding {
	return Finding{
		Rule: rule.Name, Level: rule.Level, Requirement: rule.Requirement,
		Kind: at.kind, Object: at.object, File: at.file, Line: at.line,
		Message: message, Why: rule.Why, Remedy: rule.Remedy,
	}
}

// Count is the number of findings of a level.
func Count(findings []Finding, level Level) int {
	n := 0

	for _, f := range findings {
		if f.Level == level {
			n++
		}
	}

	return n
}
