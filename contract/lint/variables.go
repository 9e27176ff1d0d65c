package lint

import (
	"regexp"
	"strings"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/contract"
)

// variableRules are about the variables of the components.
var variableRules = []rule{
	{
		Name:        "components/variable-image",
		Level:       contract.Warning,
		Contract:    contract.Clusterctl + "#variables",
		Requirement: "Images do not depend on variables.",
		Why: "Lists of images, mirrors and signatures cover only the default, and clusterctl rejects the provider if a " +
			"value is not a canonical name.",
		Remedy: "Write the image itself. Users replace it with the image overrides of clusterctl and operators.",
		Check:  checkVariableImages,
	},
	{
		Name:        "components/variable-name",
		Level:       contract.Warning,
		Contract:    contract.Clusterctl + "#variables",
		Requirement: "Names of objects do not depend on variables.",
		Why: "With another value, an upgrade deletes the object and creates another one, and whatever refers to it " +
			"outside of the components breaks.",
		Remedy: "Write the name itself.",
		Check:  checkVariableNames,
	},
	{
		Name:        "components/variable-prefix",
		Level:       contract.Info,
		Contract:    contract.Clusterctl + "#variables",
		Requirement: "Names of variables begin with the provider's name.",
		Why:         "All providers of a management cluster share one set of variables, so names can collide.",
		Remedy:      "Add the prefix to new variables. Do not rename those that users already set.",
		Check:       checkVariablePrefix,
	},
	{
		Name:        "components/variable-spaces",
		Level:       contract.Warning,
		Contract:    contract.Clusterctl + "#variables",
		Requirement: "Variables have no spaces inside the braces.",
		Why:         "Only clusterctl's own preprocessing makes ${ VAR } work. Other tools with this syntax reject it.",
		Remedy:      "Write ${VAR}.",
		Check:       checkVariableSpaces,
	},
}

// acronym matches the acronyms of providers, such as CAPA, CABPK, CACPK, CAAPH or CAPVCD.
var acronym = regexp.MustCompile(`^CA[ABCIR]?P[A-Z0-9]{1,4}$`)

// checkVariablePrefix accepts variables that providers share on purpose: EXP_* and CLUSTER_TOPOLOGY
// are feature gates that must be equal in all providers. It also accepts the acronym of a provider.
func checkVariablePrefix(p *parsedBundle, report reporter) {
	if p.Provider.Type == string(v1alpha2.CoreProviderType) {
		return
	}

	prefix := strings.ToUpper(strings.ReplaceAll(p.Provider.Name, "-", "_")) + "_"

	var others []string

	for _, v := range p.componentsFile.variables {
		firstWord, _, _ := strings.Cut(v.Name, "_")
		shared := firstWord == "EXP" || v.Name == "CLUSTER_TOPOLOGY"

		if shared || strings.HasPrefix(v.Name, prefix) || acronym.MatchString(firstWord) {
			continue
		}

		others = append(others, v.Name)
	}

	if others != nil {
		report(p.componentsFile.whole(), "uses %s without the prefix %s: %s",
			plural(len(others), "variable"), prefix, strings.Join(others, ", "))
	}
}

// spacedVariable matches variables with spaces inside the braces, also if they are escaped by a dollar sign.
var spacedVariable = regexp.MustCompile(`(\$?)\$\{([ \t]+\w+[ \t]*|\w+[ \t]+)\}`)

func checkVariableSpaces(p *parsedBundle, report reporter) {
	seen := map[string]bool{}

	for _, match := range spacedVariable.FindAllStringSubmatch(string(p.Components), -1) {
		if escaped, inside := match[1] != "", match[2]; !escaped && !seen[inside] {
			seen[inside] = true

			report(p.componentsFile.whole(), "${%s} has spaces inside the braces", inside)
		}
	}
}

func checkVariableImages(p *parsedBundle, report reporter) {
	for _, w := range p.workloads {
		marked := bundle.Containers(w.doc.Marked())

		for i, container := range w.containers {
			if i >= len(marked) || !bundle.IsMarked(bundle.NestedString(marked[i], "image")) {
				continue
			}

			report(p.componentsFile.at(w.doc),
				"runs the container %s with an image that depends on a variable", bundle.NestedString(container, "name"))
		}
	}
}

func checkVariableNames(p *parsedBundle, report reporter) {
	for i := range p.componentsFile.documents {
		doc := &p.componentsFile.documents[i]
		if bundle.IsMarked(bundle.NestedString(doc.Marked(), "metadata", "name")) {
			report(p.componentsFile.at(doc), "has a name that depends on a variable")
		}
	}
}
