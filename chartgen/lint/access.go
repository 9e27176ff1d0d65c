package lint

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/capstan-project/capstan/chartgen/bundle"
)

// labelAggregate is the label of the ClusterRoles whose rules Cluster API's core has, too.
const labelAggregate = "cluster.x-k8s.io/aggregate-to-manager"

var coreAccessRule = Rule{
	Name:     "crd/core-access",
	Level:    Error,
	Contract: overview,
	Requirement: "For kinds outside Cluster API's own groups, a ClusterRole with the label " + labelAggregate +
		": \"true\" grants the core controllers access.",
	Why:    "Cluster API's core cannot read or own the objects, so no Cluster gets past its first step.",
	Remedy: "Add the ClusterRole, or the missing verbs. The page of the contract has an example.",
	check:  referenced(checkCoreAccess),
}

func checkCoreAccess(p *parsedBundle, c crd, report reporter) {
	if c.InCoreGroup() {
		return
	}

	granted := p.grantedToCore(c)
	missing := slices.DeleteFunc(c.Verbs(), func(verb string) bool { return containsOrAll(granted, verb) })

	switch at := p.atCRD(c, sectionGroup, "group: "); {
	case granted == nil:
		report(at, "belongs to the group %s, but no aggregated ClusterRole grants the core controllers access to %s",
			c.Group, c.Plural)
	case len(missing) > 0:
		report(at, "belongs to the group %s, but the aggregated ClusterRoles do not grant the core controllers %s on %s",
			c.Group, strings.Join(missing, ", "), c.Plural)
	}
}

// grantedToCore returns the verbs that the components grant Cluster API's core on the objects of a CRD.
func (p *parsedBundle) grantedToCore(c crd) []string {
	var verbs []string

	for _, role := range p.objects("ClusterRole") {
		if role.Object.GetLabels()[labelAggregate] != "true" {
			continue
		}

		for _, rule := range bundle.NestedMaps(role.Object.Object, "rules") {
			groups := nestedStrings(rule, "apiGroups")
			resources := nestedStrings(rule, "resources")

			if containsOrAll(groups, c.Group) && containsOrAll(resources, c.Plural) {
				verbs = append(verbs, nestedStrings(rule, "verbs")...)
			}
		}
	}

	return verbs
}

// containsOrAll reports whether a list of an RBAC rule contains an item or "*".
func containsOrAll(list []string, item string) bool {
	return slices.Contains(list, item) || slices.Contains(list, "*")
}

// aggregationRule is about ClusterRoles whose rules are those of others.
var aggregationRule = Rule{
	Name:        "references/aggregation",
	Level:       Warning,
	Contract:    clusterctlContract + "#links-to-external-objects",
	Requirement: "The components contain ClusterRoles that each aggregated ClusterRole selects.",
	Why:         "The aggregated ClusterRole grants nothing until such ClusterRoles are created in another way.",
	Remedy:      "Label the ClusterRoles to aggregate, or document where they come from.",
	check:       checkAggregation,
}

// checkAggregation checks each selector of a ClusterRole. It does not check Cluster API's core, whose
// role selects those of providers.
func checkAggregation(p *parsedBundle, report reporter) {
	roles := p.objects("ClusterRole")

	for _, role := range roles {
		selectors := bundle.NestedMaps(role.Object.Object, "aggregationRule", "clusterRoleSelectors")
		selects := func(other *bundle.Document) bool {
			return other != role && slices.ContainsFunc(selectors, func(s map[string]any) bool {
				return matches(s, other.Object.GetLabels())
			})
		}

		if len(selectors) > 0 && !slices.ContainsFunc(roles, selects) {
			report(p.componentsFile.at(role, "clusterRoleSelectors"), "aggregates the ClusterRoles %s, of which there are none",
				describeSelectors(selectors))
		}
	}
}

// matches reports whether a label selector matches labels. A selector that is invalid, or depends on a
// variable, may match anything.
func matches(selector map[string]any, of map[string]string) bool {
	var parsed metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(selector, &parsed); err != nil {
		return true
	}

	s, err := metav1.LabelSelectorAsSelector(&parsed)

	return err != nil || isUnresolved(s.String()) || s.Matches(labels.Set(of))
}

// describeSelectors formats the labels of selectors, such as "with the labels a=b or c=d".
func describeSelectors(selectors []map[string]any) string {
	var all []string

	for _, selector := range selectors {
		var parsed metav1.LabelSelector
		if runtime.DefaultUnstructuredConverter.FromUnstructured(selector, &parsed) == nil {
			all = append(all, metav1.FormatLabelSelector(&parsed))
		}
	}

	return fmt.Sprintf("with the labels %s", strings.Join(all, " or "))
}
