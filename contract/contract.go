// Package contract describes the rules of Cluster API's contracts with providers, and findings where a rule is broken.
package contract

import (
	"cmp"
	"fmt"
	"slices"
)

// Level is the severity of a rule.
type Level string

// The levels.
const (
	// Error is for what a contract requires and without which something fails: clusterctl, the API
	// server, or Cluster API's core.
	Error Level = "error"
	// Warning is for what works today but is likely to cause trouble.
	Warning Level = "warning"
	// Info is for advice.
	Info Level = "info"
)

// levels are all levels, most severe first.
var levels = []Level{Error, Warning, Info}

// severity returns a number that is lower for more severe levels.
func severity(level Level) int { return slices.Index(levels, level) }

// Rule is one requirement of a contract on a subject, such as what a provider publishes. Its texts are complete
// sentences.
type Rule[Subject any] struct {
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
	// Check reports where a subject breaks the rule.
	Check func(Subject, Reporter)
}

// Reporter records a finding of the rule that is being checked.
type Reporter func(at Place, format string, args ...any)

// Place is where a rule is broken, in a published file or in a cluster.
type Place struct {
	// Kind and Object identify the object. Both are empty if a whole file is concerned.
	Kind   string `json:"kind,omitempty"`
	Object string `json:"object,omitempty"`
	// File is the name of the published file. For the components it is bundle.ComponentsFile,
	// whatever name they were published under. It is empty for an object in a cluster.
	File string `json:"file,omitempty"`
	// Contract is the URL of the section that contains the requirement; empty for that of the rule.
	Contract string `json:"contract"`
	// Providers are the labels of the providers that are responsible for what is in a cluster. Nil means all.
	Providers []string `json:"-"`
}

// Finding is one place where a rule is broken.
type Finding struct {
	Rule  string `json:"rule"`
	Level Level  `json:"level"`
	Place
	Message     string `json:"message"`
	Requirement string `json:"-"`
	Why         string `json:"why"`
	Remedy      string `json:"remedy"`
}

// Check checks a subject against rules. The findings are sorted by file, object, and rule.
func Check[Subject any](rules []Rule[Subject], subject Subject) []Finding {
	var findings []Finding

	for _, rule := range rules {
		rule.Check(subject, func(at Place, format string, args ...any) {
			findings = append(findings, rule.Finding(at, fmt.Sprintf(format, args...)))
		})
	}

	sortFindings(findings)

	return findings
}

// Finding returns a finding of the rule.
func (rule Rule[_]) Finding(at Place, message string) Finding {
	at.Contract = cmp.Or(at.Contract, rule.Contract)

	return Finding{
		Rule:        rule.Name,
		Level:       rule.Level,
		Place:       at,
		Message:     message,
		Requirement: rule.Requirement,
		Why:         rule.Why,
		Remedy:      rule.Remedy,
	}
}

// sortFindings sorts by file, object, and rule.
func sortFindings(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File),
			cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Object, b.Object),
			cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.Message, b.Message),
		)
	})
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
	return slices.ContainsFunc(findings, func(f Finding) bool { return severity(f.Level) <= severity(level) })
}
