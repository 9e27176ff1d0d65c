package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/cluster-api/util/contract"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/bundle"
)

const (
	labelContractPrefix = "cluster.x-k8s.io/"
	labelAggregate      = "cluster.x-k8s.io/aggregate-to-manager"
	labelMove           = "clusterctl.cluster.x-k8s.io/move"
	labelMoveHierarchy  = "clusterctl.cluster.x-k8s.io/move-hierarchy"
)

// crdRules are about the CRDs of kinds to which Cluster API's core refers, and about `clusterctl
// move`.
var crdRules = []Rule{
	{
		Name:        "crd/name",
		Level:       Error,
		Contract:    controlPlaneContract + "#controlplane-controlplanelist-resource-definition",
		Requirement: "A CRD has the name that Cluster API's CalculateCRDName returns for its group and kind.",
		Why:         "Cluster API's core looks up CRDs by this name, and every reference to the kind fails.",
		Remedy:      "Rename the CRD by setting its plural with the resource path marker of kubebuilder.",
		check: contracted(func(p *parsedBundle, c crd, report reporter) {
			name := c.doc.Object.GetName()
			if want := contract.CalculateCRDName(c.group, c.kind); name != want {
				report(p.componentsFile.at(c.doc, "name: "+name), "must be named %s", want)
			}
		}),
	},
	{
		Name:        "crd/scope",
		Level:       Error,
		Contract:    controlPlaneContract + "#all-resources-scope",
		Requirement: "Kinds to which Cluster API's core refers are namespaced.",
		Why:         "References do not leave the namespace of a Cluster, and neither does `clusterctl move`.",
		Remedy:      "Set the scope of the CRD to Namespaced.",
		check: contracted(func(p *parsedBundle, c crd, report reporter) {
			if scope := nestedString(c.spec, "scope"); scope == "Cluster" {
				report(p.componentsFile.at(c.doc, "scope: Cluster"), "has the scope %s", scope)
			}
		}),
	},
	{
		Name:     "crd/contract-label",
		Level:    Error,
		Contract: controlPlaneContract + "#all-resources-version",
		Requirement: "The label cluster.x-k8s.io/<contract> of a CRD lists the versions that implement the contract from " +
			"metadata.yaml, and the newest of them is served.",
		Why:    "Cluster API's core uses this label to determine the API version of every reference.",
		Remedy: "Set the label to the served versions, joined by '_', for example cluster.x-k8s.io/v1beta2: v1beta2.",
		check:  contracted(checkContractLabel),
	},
	{
		Name:        "crd/contract-label-versions",
		Level:       Warning,
		Contract:    controlPlaneContract + "#all-resources-version",
		Requirement: "The contract labels of a CRD list only versions that exist in the CRD.",
		Why:         "Cluster API's core of that contract fails for this kind, or will fail when newer versions are removed.",
		Remedy:      "Remove the version from the label, or the whole label.",
		check:       checkContractLabelVersions,
	},
	{
		Name:     "crd/core-access",
		Level:    Error,
		Contract: controlPlaneContract + "#all-resources-api-group",
		Requirement: "For kinds outside Cluster API's own groups, a ClusterRole with the label " + labelAggregate +
			": \"true\" grants the core controllers access.",
		Why:    "Cluster API's core cannot read or own the objects, so no Cluster gets past its first step.",
		Remedy: "Add the ClusterRole. It needs the verbs create, delete, get, list, patch, update, and watch.",
		check:  contracted(checkCoreAccess),
	},
	{
		Name:     "crd/move-hierarchy",
		Level:    Info,
		Contract: clusterctlContract + "#move",
		Requirement: "A cluster-scoped CRD has the label " + labelMoveHierarchy + " or " + labelMove +
			", so that its objects move together with the objects that use them.",
		Why:    "`clusterctl move` leaves the objects behind, and references to them break in the new management cluster.",
		Remedy: "Set one of the labels, unless the objects belong to the management cluster itself.",
		check:  checkMoveHierarchy,
	},
}

// crd is a CustomResourceDefinition of the components.
type crd struct {
	doc                 *bundle.Document
	spec                map[string]any
	group, kind, plural string
}

func newCRD(doc *bundle.Document) crd {
	spec := bundle.NestedMap(doc.Object.Object, "spec")

	return crd{
		doc:    doc,
		spec:   spec,
		group:  nestedString(spec, "group"),
		kind:   nestedString(spec, "names", "kind"),
		plural: nestedString(spec, "names", "plural"),
	}
}

// apiVersion returns an API version of the CRD, or nil if it does not exist.
func (c crd) apiVersion(name string) map[string]any {
	for _, v := range bundle.NestedMaps(c.spec, "versions") {
		if nestedString(v, "name") == name {
			return v
		}
	}

	return nil
}

// converts reports whether the API server needs to convert objects of the kind.
func (c crd) converts() bool { return len(bundle.NestedMaps(c.spec, "versions")) > 1 }

// conversionService returns the name of the Service that converts objects of the kind, or "".
func (c crd) conversionService() string {
	return nestedString(c.spec, "conversion", "webhook", "clientConfig", "service", "name")
}

// implements returns the API version that Cluster API's core uses for a contract: the newest that
// the label lists, or "" if there is no label.
func (c crd) implements(contract string) string {
	newest := ""
	for v := range strings.SplitSeq(c.doc.Object.GetLabels()[labelContractPrefix+contract], "_") {
		if newest == "" || version.CompareKubeAwareVersionStrings(v, newest) > 0 {
			newest = v
		}
	}

	return newest
}

// isControlPlane reports whether a kind is a control plane. It is one if its name follows the
// naming convention of the contract, or if it is in the contract's group and has a template: that
// group also contains other kinds.
func (p *parsedBundle) isControlPlane(c crd) bool {
	return strings.HasSuffix(c.kind, "ControlPlane") ||
		c.group == "controlplane.cluster.x-k8s.io" && p.findCRD(c.group, c.kind+"Template") != nil
}

// findCRD returns the CRD of a kind, or nil.
func (p *parsedBundle) findCRD(group, kind string) *crd {
	for i, c := range p.crds {
		if c.group == group && c.kind == kind {
			return &p.crds[i]
		}
	}

	return nil
}

// coreGroups are the API groups of providers to which Cluster API's core always has access.
var coreGroups = []string{
	"bootstrap.cluster.x-k8s.io",
	"controlplane.cluster.x-k8s.io",
	"infrastructure.cluster.x-k8s.io",
}

// isContracted reports whether Cluster API's core refers to objects of a kind. By the contracts,
// the names of such kinds end with Cluster, Machine, MachinePool, ControlPlane, or Config, and
// their templates with Template. In a group of the provider's own, only kinds with a template
// count.
func (p *parsedBundle) isContracted(c crd) bool {
	switch v1alpha2.ProviderType(p.Provider.Type) {
	case v1alpha2.InfrastructureProviderType, v1alpha2.BootstrapProviderType, v1alpha2.ControlPlaneProviderType:
	default:
		return false
	}

	base := c
	base.kind = strings.TrimSuffix(c.kind, "Template")

	bootstrapConfig := strings.HasPrefix(c.group, "bootstrap.") && strings.HasSuffix(base.kind, "Config")
	infrastructure := strings.HasSuffix(base.kind, "Cluster") ||
		strings.HasSuffix(base.kind, "Machine") ||
		strings.HasSuffix(base.kind, "MachinePool")

	if !bootstrapConfig && !infrastructure && !p.isControlPlane(base) {
		return false
	}

	return slices.Contains(coreGroups, c.group) ||
		p.findCRD(c.group, base.kind) != nil && p.findCRD(c.group, base.kind+"Template") != nil
}

// contracted returns a check of all CRDs of kinds to which Cluster API's core refers.
func contracted(check func(*parsedBundle, crd, reporter)) func(*parsedBundle, reporter) {
	return func(p *parsedBundle, report reporter) {
		for _, c := range p.crds {
			if p.isContracted(c) {
				check(p, c, report)
			}
		}
	}
}

func checkContractLabel(p *parsedBundle, c crd, report reporter) {
	if p.contract == "" {
		return
	}

	label := labelContractPrefix + p.contract
	name := c.implements(p.contract)
	version := c.apiVersion(name)
	at := p.componentsFile.at(c.doc, label)

	switch {
	case name == "":
		report(at, "has no label %s", label)
	case version == nil:
		report(at, "declares in the label %s that %s implements the contract, but has no such version", label, name)
	case version["served"] == false:
		report(at, "declares in the label %s that %s implements the contract, but does not serve it", label, name)
	}
}

func checkContractLabelVersions(p *parsedBundle, report reporter) {
	missing := map[string][]*bundle.Document{} // by "label: version"

	for _, c := range p.crds {
		for key, joined := range c.doc.Object.GetLabels() {
			contract, ok := strings.CutPrefix(key, labelContractPrefix)
			if !ok || !contractVersion.MatchString(contract) {
				continue
			}

			for name := range strings.SplitSeq(joined, "_") {
				// checkContractLabel reports the version that implements the provider's contract.
				reported := contract == p.contract && name == c.implements(contract)

				if !reported && c.apiVersion(name) == nil {
					id := key + ": " + name
					missing[id] = append(missing[id], c.doc)
				}
			}
		}
	}

	for _, id := range slices.Sorted(maps.Keys(missing)) {
		key, name, _ := strings.Cut(id, ": ")
		p.componentsFile.reportOnce(report, missing[id], key, fmt.Sprintf(
			"declares in the label %s that %s implements the contract, but has no such version", key, name))
	}
}

func checkCoreAccess(p *parsedBundle, c crd, report reporter) {
	if slices.Contains(coreGroups, c.group) {
		return
	}

	for _, role := range p.objects("ClusterRole") {
		if role.Object.GetLabels()[labelAggregate] != "true" {
			continue
		}

		for _, rule := range bundle.NestedMaps(role.Object.Object, "rules") {
			groups := nestedStrings(rule, "apiGroups")
			resources := nestedStrings(rule, "resources")

			if containsOrAll(groups, c.group) && containsOrAll(resources, c.plural) {
				return
			}
		}
	}

	report(p.componentsFile.at(c.doc, "group: "),
		"belongs to the group %s, but no aggregated ClusterRole grants the core controllers access to %s", c.group, c.plural)
}

// containsOrAll reports whether a list of an RBAC rule contains an item or "*".
func containsOrAll(list []string, item string) bool {
	return slices.Contains(list, item) || slices.Contains(list, "*")
}

func checkMoveHierarchy(p *parsedBundle, report reporter) {
	for _, c := range p.crds {
		labels := c.doc.Object.GetLabels()
		_, move := labels[labelMove]
		_, moveHierarchy := labels[labelMoveHierarchy]

		if nestedString(c.spec, "scope") == "Cluster" && !move && !moveHierarchy {
			report(p.componentsFile.at(c.doc, "scope: Cluster"),
				"is cluster-scoped and has neither label, so its objects do not move")
		}
	}
}
