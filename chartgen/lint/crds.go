package lint

import (
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

// crdRules are about CRDs of kinds to which Cluster API's core refers, and about `clusterctl move`.
var crdRules = []Rule{
	{
		Name:        "crd/name",
		Level:       Error,
		Requirement: "002-01",
		Contract:    controlPlaneContract + "#controlplane-controlplanelist-resource-definition",
		Demand:      "A CRD is named as Cluster API's CalculateCRDName makes it of group and kind.",
		Why:         "Cluster API's core looks CRDs up by this name and fails every reference to the kind.",
		Remedy:      "Rename the CRD by setting its plural, with kubebuilder's resource path marker.",
		check: contracted(func(r *release, c crd, report reporter) {
			if want := contract.CalculateCRDName(c.group, c.kind); c.doc.Object.GetName() != want {
				report(r.components.at(c.doc, "name: "+c.doc.Object.GetName()), "is named so and has to be %s", want)
			}
		}),
	},
	{
		Name: "crd/scope", Level: Error, Contract: controlPlaneContract + "#all-resources-scope",
		Demand: "Kinds to which Cluster API's core refers are namespaced.",
		Why:    "References stay inside a Cluster's namespace, and so does `clusterctl move`.",
		Remedy: "Set the CRD's scope to Namespaced.",
		check: contracted(func(r *release, c crd, report reporter) {
			if scope := text(c.spec, "scope"); scope == "Cluster" {
				report(r.components.at(c.doc, "scope: Cluster"), "is of scope %s", scope)
			}
		}),
	},
	{
		Name:     "crd/contract-label",
		Level:    Error,
		Contract: controlPlaneContract + "#all-resources-version",
		Demand:   "A CRD says by the label cluster.x-k8s.io/<contract> which of its versions implement the contract that metadata.yaml promises, and the newest of them is served.",
		Why:      "Cluster API's core takes the API version of every reference from this label.",
		Remedy:   "Set the label to the served versions, joined by '_', for example cluster.x-k8s.io/v1beta2: v1beta2.",
		check:    contracted(checkContractLabel),
	},
	{
		Name: "crd/contract-label-versions", Level: Warning, Contract: controlPlaneContract + "#all-resources-version",
		Demand: "The contract labels of a CRD name versions that the CRD has.",
		Why:    "A core of that contract fails on the kind, or will once the newer versions are gone.",
		Remedy: "Take the version, or the whole label, out.",
		check:  checkContractLabelVersions,
	},
	{
		Name:        "crd/core-access",
		Level:       Error,
		Requirement: "002-31",
		Contract:    controlPlaneContract + "#all-resources-api-group",
		Demand:      "For kinds outside Cluster API's own groups a ClusterRole with the label " + labelAggregate + ": \"true\" grants the core controllers access.",
		Why:         "Cluster API's core may neither read nor own the objects, and no Cluster gets beyond its first step.",
		Remedy:      "Add the ClusterRole, with create, delete, get, list, patch, update and watch on the kinds.",
		check:       contracted(checkCoreAccess),
	},
	{
		Name:        "crd/move-hierarchy",
		Level:       Info,
		Requirement: "001-47",
		Contract:    clusterctlContract + "#move",
		Demand:      "A cluster-scoped CRD says by the label " + labelMoveHierarchy + " or " + labelMove + " that its objects move with their users.",
		Why:         "`clusterctl move` leaves the objects behind, and what refers to them does not work in the new management cluster.",
		Remedy:      "Set one of the labels, unless the objects belong to the management cluster itself.",
		check:       checkMoveHierarchy,
	},
}

// crd is one CustomResourceDefinition.
type crd struct {
	doc                 *bundle.Document
	spec                map[string]any
	group, kind, plural string
}

func newCRD(doc *bundle.Document) crd {
	spec := mapping(doc.Object.Object, "spec")
	return crd{doc, spec, text(spec, "group"), text(spec, "names", "kind"), text(spec, "names", "plural")}
}

// apiVersion is an API version of the CRD, nil when it is not there.
func (c crd) apiVersion(name string) map[string]any {
	for _, v := range mappings(c.spec, "versions") {
		if text(v, "name") == name {
			return v
		}
	}

	return nil
}

// converts reports whether the API server ever converts objects of the kind.
func (c crd) converts() bool { return len(mappings(c.spec, "versions")) > 1 }

// implements is the API version that Cluster API's core takes for a contract: the newest that the
// label names; "" without a label.
func (c crd) implements(contract string) string {
	newest := ""
	for v := range strings.SplitSeq(c.doc.Object.GetLabels()[labelContractPrefix+contract], "_") {
		if newest == "" || version.CompareKubeAwareVersionStrings(v, newest) > 0 {
			newest = v
		}
	}

	return newest
}

// isControlPlane reports whether a kind is a control plane by the contract's naming convention, or by
// being in the contract's group with a template beside it; that group has helper kinds too.
func (r *release) isControlPlane(c crd) bool {
	return strings.HasSuffix(c.kind, "ControlPlane") ||
		c.group == "controlplane.cluster.x-k8s.io" && r.crd(c.group, c.kind+"Template") != nil
}

func (r *release) crd(group, kind string) *crd {
	for i, c := range r.crds {
		if c.group == group && c.kind == kind {
			return &r.crds[i]
		}
	}

	return nil
}

// coreGroups are the groups of other providers to which Cluster API's core has access.
var coreGroups = []string{
	"bootstrap.cluster.x-k8s.io",
	"controlplane.cluster.x-k8s.io",
	"infrastructure.cluster.x-k8s.io",
}

// isContracted reports whether Cluster API's core refers to objects of the kind. The contracts name
// such kinds …Cluster, …Machine, …MachinePool, …ControlPlane and …Config, each with its …Template;
// in a group of the provider's own only kinds with a template count.
func (r *release) isContracted(c crd) bool {
	base := c
	base.kind = strings.TrimSuffix(c.kind, "Template")

	switch v1alpha2.ProviderType(r.Provider.Type) {
	case v1alpha2.InfrastructureProviderType, v1alpha2.BootstrapProviderType, v1alpha2.ControlPlaneProviderType:
	default:
		return false
	}

	config := strings.HasSuffix(base.kind, "Config") && strings.HasPrefix(c.group, "bootstrap.")

	named := config ||
		slices.ContainsFunc(
			[]string{"Cluster", "Machine", "MachinePool"},
			func(suffix string) bool { return strings.HasSuffix(base.kind, suffix) },
		)
	if !named && !r.isControlPlane(base) {
		return false
	}

	return slices.Contains(coreGroups, c.group) ||
		r.crd(c.group, base.kind) != nil && r.crd(c.group, base.kind+"Template") != nil
}

// contracted makes a check of all CRDs to whose kinds Cluster API's core refers.
func contracted(check func(*release, crd, reporter)) func(*release, reporter) {
	return func(r *release, report reporter) {
		for _, c := range r.crds {
			if r.isContracted(c) {
				check(r, c, report)
			}
		}
	}
}

func checkContractLabel(r *release, c crd, report reporter) {
	if r.contract == "" {
		return
	}

	label := labelContractPrefix + r.contract
	name := c.implements(r.contract)
	version := c.apiVersion(name)
	at := r.components.at(c.doc, label)

	switch {
	case name == "":
		report(at, "has no label %s", label)
	case version == nil:
		report(at, "says by the label %s that %s implements the contract, and has no such version", label, name)
	case version["served"] == false:
		report(at, "says by the label %s that %s implements the contract, and does not serve it", label, name)
	}
}

func checkContractLabelVersions(r *release, report reporter) {
	dead := map[string][]*bundle.Document{} // by "label: version"

	for _, c := range r.crds {
		for key, joined := range c.doc.Object.GetLabels() {
			contract, ok := strings.CutPrefix(key, labelContractPrefix)
			if !ok || !contractVersion.MatchString(contract) {
				continue
			}

			for name := range strings.SplitSeq(joined, "_") {
				if reported := contract == r.contract && name == c.implements(contract); !reported && c.apiVersion(name) == nil {
					id := key + ": " + name
					dead[id] = append(dead[id], c.doc)
				}
			}
		}
	}

	for _, id := range slices.Sorted(maps.Keys(dead)) {
		key, name, _ := strings.Cut(id, ": ")
		r.components.each(
			report,
			dead[id],
			key,
			"says by the label %s that %s implements the contract, and has no such version",
			key,
			name,
		)
	}
}

func checkCoreAccess(r *release, c crd, report reporter) {
	if slices.Contains(coreGroups, c.group) {
		return
	}

	for _, role := range r.objects("ClusterRole") {
		if role.Object.GetLabels()[labelAggregate] != "true" {
			continue
		}

		for _, rule := range mappings(role.Object.Object, "rules") {
			if containsOrAll(texts(rule, "apiGroups"), c.group) && containsOrAll(texts(rule, "resources"), c.plural) {
				return
			}
		}
	}

	report(
		r.components.at(c.doc, "group: "),
		"is of group %s, and no aggregated ClusterRole grants the core controllers %s",
		c.group,
		c.plural,
	)
}

// containsOrAll reports whether a rule's list has an item or everything.
func containsOrAll(list []string, item string) bool {
	return slices.Contains(list, item) || slices.Contains(list, "*")
}

func checkMoveHierarchy(r *release, report reporter) {
	for _, c := range r.crds {
		labels := c.doc.Object.GetLabels()
		_, move := labels[labelMove]

		_, hierarchy := labels[labelMoveHierarchy]
		if text(c.spec, "scope") == "Cluster" && !move && !hierarchy {
			report(
				r.components.at(c.doc, "scope: Cluster"),
				"is cluster-scoped and has neither label, so its objects do not move",
			)
		}
	}
}
