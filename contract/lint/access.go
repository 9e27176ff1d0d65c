package lint

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/capstan-project/capstan/chartgen/bundle"
	"github.com/capstan-project/capstan/contract"
)

// labelAggregate is the label of the ClusterRoles whose rules Cluster API's core has, too.
const labelAggregate = "cluster.x-k8s.io/aggregate-to-manager"

var coreAccessRule = rule{
	Name:     "crd/core-access",
	Level:    contract.Error,
	Contract: overview,
	Requirement: "For kinds outside Cluster API's own groups, a ClusterRole with the label " + labelAggregate +
		": \"true\" grants core access.",
	Why:    "Cluster API's core cannot read or own the objects, so no Cluster gets past its first step.",
	Remedy: "Add the ClusterRole, or the missing verbs. The page of the contract has an example.",
	Check:  referenced(checkCoreAccess),
}

func checkCoreAccess(p *parsedBundle, c *crd, report reporter) {
	if c.InCoreGroup() {
		return
	}

	granted := p.grantedToCore(c)
	missing := slices.DeleteFunc(c.Verbs(), func(verb string) bool { return containsOrAll(granted, verb) })

	switch at := p.atCRD(c, sectionGroup); {
	case granted == nil:
		report(at, "belongs to the group %s, but no aggregated ClusterRole grants the core controllers access to %s",
			c.Group, c.Plural)
	case len(missing) > 0:
		report(at, "belongs to the group %s, but the aggregated ClusterRoles do not grant the core controllers %s on %s",
			c.Group, strings.Join(missing, ", "), c.Plural)
	}
}

// grantedToCore returns the verbs that the components grant Cluster API's core on the objects of a CRD.
func (p *parsedBundle) grantedToCore(c *crd) []string {
	var verbs []string

	for _, role := range p.objects("ClusterRole") {
		if role.Object.GetLabels()[labelAggregate] != "true" {
			continue
		}

		verbs = append(verbs, verbsOn(role, c.Group, c.Plural)...)
	}

	return verbs
}

// containsOrAll reports whether a list of an RBAC rule contains an item or "*".
func containsOrAll(list []string, item string) bool {
	return slices.Contains(list, item) || slices.Contains(list, "*")
}

// aggregationRule is about ClusterRoles whose rules are those of others.
var aggregationRule = rule{
	Name:        "references/aggregation",
	Level:       contract.Warning,
	Contract:    contract.Clusterctl + "#links-to-external-objects",
	Requirement: "Each aggregated ClusterRole selects ClusterRoles of the components.",
	Why:         "The aggregated ClusterRole grants nothing until such ClusterRoles are created in another way.",
	Remedy:      "Label the ClusterRoles to aggregate, or document where they come from.",
	Check:       checkAggregation,
}

// checkAggregation checks each selector of a ClusterRole. It does not check Cluster API's core, whose
// role selects those of providers.
func checkAggregation(p *parsedBundle, report reporter) {
	roles := p.objects("ClusterRole")

	for _, role := range roles {
		selectors := selectorsOf(role)
		selects := func(other *bundle.Document) bool {
			return other != role && slices.ContainsFunc(selectors, func(s labels.Selector) bool {
				return s.Matches(labels.Set(other.Object.GetLabels()))
			})
		}

		if len(selectors) > 0 && !slices.ContainsFunc(roles, selects) {
			report(p.componentsFile.at(role), "aggregates the ClusterRoles %s, of which there are none",
				describeSelectors(selectors))
		}
	}
}

// selectorsOf returns the selectors of an aggregated ClusterRole. One that is invalid, or depends on a variable,
// may select anything.
func selectorsOf(role *bundle.Document) []labels.Selector {
	rules := bundle.NestedMaps(role.Object.Object, "aggregationRule", "clusterRoleSelectors")
	selectors := make([]labels.Selector, 0, len(rules))

	for _, m := range rules {
		var parsed metav1.LabelSelector

		err := runtime.DefaultUnstructuredConverter.FromUnstructured(m, &parsed)
		selector, invalid := metav1.LabelSelectorAsSelector(&parsed)

		if err != nil || invalid != nil || isUnresolved(selector.String()) {
			selector = labels.Everything()
		}

		selectors = append(selectors, selector)
	}

	return selectors
}

// describeSelectors formats the labels of selectors, such as "with the labels a=b or c=d".
func describeSelectors(selectors []labels.Selector) string {
	all := make([]string, 0, len(selectors))
	for _, selector := range selectors {
		all = append(all, selector.String())
	}

	return "with the labels " + strings.Join(all, " or ")
}
