package lint

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	capicontract "sigs.k8s.io/cluster-api/util/contract"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/contract"
)

// The sections that the pages of all resources have.
const (
	sectionScope   = "all-resources-scope"
	sectionVersion = "all-resources-version"
	sectionGroup   = "all-resources-api-group"
)

// The labels by which `clusterctl move` selects objects.
const (
	labelMove          = "clusterctl.cluster.x-k8s.io/move"
	labelMoveHierarchy = "clusterctl.cluster.x-k8s.io/move-hierarchy"
)

// crdRules are about the CRDs of kinds to which Cluster API's core refers, and about `clusterctl
// move`. The findings of most refer to the page of the resource.
var crdRules = []rule{
	{
		Name:        "crd/contract-kind",
		Level:       contract.Warning,
		Contract:    overview,
		Requirement: "A provider has a kind of its contract, whose name ends with Cluster, Machine, Config or ControlPlane.",
		Why:         "Other tools do not recognize the kinds, and their CRDs cannot be checked.",
		Remedy:      "Follow the naming convention, and set the contract's labels on the CRDs.",
		Check:       checkContractKind,
	},
	{
		Name:        "crd/name",
		Level:       contract.Error,
		Contract:    overview,
		Requirement: "A CRD has the name that CalculateCRDName returns for its kind.",
		Why:         "Cluster API's core looks up CRDs by this name, and every reference to the kind fails.",
		Remedy:      "Rename the CRD by setting its plural with the resource path marker of kubebuilder.",
		Check:       checkCRDName,
	},
	{
		Name:        "crd/scope",
		Level:       contract.Error,
		Contract:    overview,
		Requirement: "Kinds to which core refers are namespaced.",
		Why:         "References do not leave the namespace of a Cluster, and neither does `clusterctl move`.",
		Remedy:      "Set the scope of the CRD to Namespaced.",
		Check: referenced(func(p *parsedBundle, c *crd, report reporter) {
			if c.IsClusterScoped() {
				report(p.atCRD(c, sectionScope), "has the scope Cluster")
			}
		}),
	},
	{
		Name:     "crd/contract-label",
		Level:    contract.Error,
		Contract: overview,
		Requirement: "A CRD has a label cluster.x-k8s.io/<contract> with the versions that implement it, of which the " +
			"newest is served.",
		Why:    "Without it, Cluster API's core finds no API version for a reference, and the Cluster makes no progress.",
		Remedy: "Set the label to the served versions, joined by '_', for example cluster.x-k8s.io/v1beta2: v1beta2.",
		Check:  referenced(checkContractLabel),
	},
	{
		Name:        "crd/contract-label-outdated",
		Level:       contract.Warning,
		Contract:    overview,
		Requirement: "CRDs have the label of the contract in metadata.yaml, not only an older one.",
		Why: "Cluster API's core uses the kind by the rules of the older contract, until it is no longer compatible " +
			"with it.",
		Remedy: "Implement the contract from metadata.yaml and set its label, or list the older one in metadata.yaml.",
		Check:  checkContractLabelOutdated,
	},
	{
		Name:        "crd/contract-label-versions",
		Level:       contract.Info,
		Contract:    overview,
		Requirement: "Contract labels of a CRD list only versions that it has.",
		Why:         "Nothing fails, because core uses another version, but the label promises more than there is.",
		Remedy:      "Remove the version from the label, or the whole label.",
		Check:       checkContractLabelVersions,
	},
	{
		Name:        "crd/template-spec",
		Level:       contract.Warning,
		Contract:    overview,
		Requirement: "Templates have the spec of the objects to create in spec.template.spec.",
		Why:         "Cluster API's core copies spec.template of the template, so the objects that it creates have no spec.",
		Remedy:      "Add the field to the Go type of the API, and regenerate the CRD.",
		Check:       referenced(checkTemplateSpec),
	},
	coreAccessRule,
	{
		Name:        "crd/ca-bundle",
		Level:       contract.Error,
		Contract:    contract.Clusterctl + "#components-yaml",
		Requirement: "A CRD's caBundle is a certificate, or left out.",
		Why: "cert-manager replaces the placeholder by a certificate. Since version 1.31, the API server refuses to " +
			"change that back, so clusterctl cannot upgrade the provider to another version with a placeholder.",
		Remedy: "Remove the field caBundle. cert-manager adds it.",
		Check:  checkCABundle,
	},
	{
		Name:     "crd/move-hierarchy",
		Level:    contract.Info,
		Contract: contract.Clusterctl + "#move",
		Requirement: "A cluster-scoped CRD has the label " + labelMoveHierarchy + " or " + labelMove +
			", so that its objects move with those that use them.",
		Why:    "`clusterctl move` leaves the objects behind, and references to them break in the new management cluster.",
		Remedy: "Set one of the labels, unless the objects belong to the management cluster itself.",
		Check:  checkMoveHierarchy,
	},
}

// referenced returns a check of all CRDs of kinds to which Cluster API's core refers.
func referenced(check func(*parsedBundle, *crd, reporter)) func(*parsedBundle, reporter) {
	return func(p *parsedBundle, report reporter) {
		for _, c := range p.crds {
			if c.IsReferenced() {
				check(p, c, report)
			}
		}
	}
}

// atCRD returns the location of a CRD, with the section of the page about its resource.
func (p *parsedBundle) atCRD(c *crd, section string) place {
	at := p.componentsFile.at(c.doc)
	at.Contract = c.Resource.URL(section)

	return at
}

func checkContractKind(p *parsedBundle, report reporter) {
	if len(p.crds) == 0 || !definesKinds(p.providerType()) {
		return
	}

	if !slices.ContainsFunc(p.crds, func(c *crd) bool { return c.IsReferenced() }) {
		report(p.componentsFile.at(p.crds[0].doc), "is no kind of a contract, and neither is that of any other CRD")
	}
}

func checkCRDName(p *parsedBundle, report reporter) {
	for _, c := range p.crds {
		if c.Resource == nil {
			continue
		}

		if want := capicontract.CalculateCRDName(c.Group, c.Kind); c.Name != want {
			report(p.atCRD(c, c.Resource.Definition), "must be named %s", want)
		}
	}
}

func checkContractLabel(p *parsedBundle, c *crd, report reporter) {
	if p.contract == "" {
		return
	}

	implemented, name := c.Implementation(p.contract)
	label := contract.LabelPrefix + implemented
	version := c.Version(name)

	switch {
	case name == "":
		report(p.atCRD(c, sectionVersion), "has no label %s", contract.LabelPrefix+p.contract)
	case version == nil:
		report(p.atCRD(c, sectionVersion),
			"declares in the label %s that %s implements the contract, but has no such version", label, name)
	case !version.Served:
		report(p.atCRD(c, sectionVersion),
			"declares in the label %s that %s implements the contract, but does not serve it", label, name)
	}
}

func checkContractLabelOutdated(p *parsedBundle, report reporter) {
	outdated := map[string][]*bundle.Document{} // by contract

	for _, c := range p.crds {
		if !c.IsReferenced() {
			continue
		}

		if implemented, _ := c.Implementation(p.contract); implemented != "" && implemented != p.contract {
			outdated[implemented] = append(outdated[implemented], c.doc)
		}
	}

	for _, implemented := range slices.Sorted(maps.Keys(outdated)) {
		label := contract.LabelPrefix + implemented
		p.componentsFile.reportOnce(report, outdated[implemented], fmt.Sprintf(
			"has the label %s, but not %s", label, contract.LabelPrefix+p.contract))
	}
}

func checkContractLabelVersions(p *parsedBundle, report reporter) {
	missing := map[string][]*bundle.Document{} // by "label: version"

	for _, c := range p.crds {
		reported := p.implementation(c)
		exists := c.VersionNames()

		for key, joined := range c.Labels {
			labeled, ok := strings.CutPrefix(key, contract.LabelPrefix)
			if !ok || !isContractVersion(labeled) {
				continue
			}

			for name := range strings.SplitSeq(joined, "_") {
				if !exists[name] && reported != [2]string{labeled, name} {
					id := key + ": " + name
					missing[id] = append(missing[id], c.doc)
				}
			}
		}
	}

	for _, id := range slices.Sorted(maps.Keys(missing)) {
		key, name, _ := strings.Cut(id, ": ")
		p.componentsFile.reportOnce(report, missing[id], fmt.Sprintf(
			"declares in the label %s that %s implements the contract, but has no such version", key, name))
	}
}

// implementation returns the contract and the version by which core uses a CRD. If there is no such version,
// checkContractLabel reports that.
func (p *parsedBundle) implementation(c *crd) [2]string {
	if !c.IsReferenced() {
		return [2]string{}
	}

	implemented, version := c.Implementation(p.contract)

	return [2]string{implemented, version}
}

func checkTemplateSpec(p *parsedBundle, c *crd, report reporter) {
	_, name := c.Implementation(p.contract)

	version := c.Version(name)
	if version == nil || !c.IsTemplate {
		return
	}

	if problem := version.Problem(field{Path: "spec.template.spec", Type: "object"}); problem != "" {
		report(p.atCRD(c, c.Resource.Template.Section), "version %s lacks %s", name, problem)
	}
}

func checkCABundle(p *parsedBundle, report reporter) {
	for _, c := range p.crds {
		ca := bundle.CABundle(c.doc.Object.Object)
		if ca == "" || isUnresolved(ca) {
			continue
		}

		pem, err := base64.StdEncoding.DecodeString(ca)
		if err != nil || !bundle.HasCertificate(pem) {
			report(p.componentsFile.at(c.doc), "has a caBundle that is not a certificate")
		}
	}
}

// checkMoveHierarchy does not check Cluster API's core, whose cluster-scoped objects belong to the management cluster.
func checkMoveHierarchy(p *parsedBundle, report reporter) {
	if p.providerType() == v1alpha2.CoreProviderType {
		return
	}

	for _, c := range p.crds {
		_, move := c.Labels[labelMove]
		_, moveHierarchy := c.Labels[labelMoveHierarchy]

		if c.IsClusterScoped() && !move && !moveHierarchy {
			report(p.componentsFile.at(c.doc), "is cluster-scoped and has neither label, so its objects do not move")
		}
	}
}
