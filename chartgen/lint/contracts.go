package lint

import (
	"strings"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/chartgen/lint/contract"
)

// overview is the page of all contracts.
const overview = "https://cluster-api.sigs.k8s.io/developer/providers/contracts/overview"

// levelOf maps how strict a requirement is to the level of its rule.
var levelOf = map[contract.Strength]Level{contract.Must: Error, contract.Should: Warning, contract.May: Info}

// contractRules returns the rules about the resources of all contracts: their templates and fields.
func contractRules() []Rule {
	var rules []Rule

	for _, r := range contract.Resources() {
		if r.Template != nil {
			rules = append(rules, templateRule(r))
		}

		for _, requirement := range r.Requirements {
			rules = append(rules, fieldRule(r, requirement))
		}
	}

	return rules
}

// templateRule returns the rule that a resource has a template.
func templateRule(r *contract.Resource) Rule {
	return Rule{
		Name:        r.Area + "/template",
		Level:       levelOf[r.Template.Strength],
		Contract:    r.URL(r.Template.Section),
		Requirement: "Each " + r.Name + " has a CRD for its template, <kind>Template.",
		Why:         r.Template.Why,
		Remedy:      "Add the CRD of the template.",
		check: func(p *parsedBundle, report reporter) {
			for _, c := range p.crds {
				if c.Resource != r || c.IsTemplate || c.NameOnly {
					continue
				}

				if _, found := p.findCRD(c.Group, c.Kind+"Template"); !found {
					report(p.componentsFile.at(c.doc), "has no matching CRD of kind %sTemplate", c.Kind)
				}
			}
		},
	}
}

// fieldRule returns the rule that a resource has the fields of a requirement.
func fieldRule(r *contract.Resource, requirement contract.Requirement) Rule {
	return Rule{
		Name:        r.Area + "/" + requirement.Name,
		Level:       levelOf[requirement.Strength],
		Contract:    r.URL(requirement.Section),
		Requirement: requirement.Text,
		Why:         requirement.Why,
		Remedy:      "Add the field to the Go type of the API, and regenerate the CRD.",
		check: each(r, func(v implementation, report reporter) {
			if !requirement.Applies(v.Version) {
				return
			}

			var problems []string

			for _, f := range requirement.Fields[v.contract] {
				if problem := v.Problem(f); problem != "" {
					problems = append(problems, problem)
				}
			}

			if problems != nil {
				report(v.location(), "version %s, which implements contract %s, lacks %s",
					v.Name, v.contract, strings.Join(problems, ", "))
			}
		}),
	}
}

// implementation is the API version of a CRD by which Cluster API's core uses a resource.
type implementation struct {
	*contract.Version

	contract string
	file     *file
	doc      *bundle.Document
}

// location returns where the version is defined.
func (v implementation) location() location { return v.file.at(v.doc, "name: "+v.Name) }

// each returns a check of all implementations of a resource. It checks nothing if the provider's
// contract is unknown.
func each(r *contract.Resource, check func(implementation, reporter)) func(*parsedBundle, reporter) {
	return func(p *parsedBundle, report reporter) {
		for _, c := range p.crds {
			if c.Resource != r || c.IsTemplate || c.NameOnly {
				continue
			}

			implemented, name := c.Implementation(p.contract)
			if version := c.Version(name); version != nil {
				check(implementation{version, implemented, &p.componentsFile, c.doc}, report)
			}
		}
	}
}
