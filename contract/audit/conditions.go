package audit

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capstan-project/capstan/contract"
)

// conditionRules are about status.conditions.
var conditionRules = []rule{
	{
		Name:        "conditions/format",
		Level:       contract.Error,
		Contract:    infraClusterContract + "#infracluster-conditions",
		Requirement: "Conditions have unique types, and the status True, False or Unknown.",
		Why:         "Cluster API's core cannot mirror the conditions, and reports an error instead.",
		Remedy:      "Set conditions with the functions of Cluster API or Kubernetes.",
		Check: func(g *graph, report reporter) {
			for _, o := range g.objects {
				if problem := conditionProblem(o); problem != "" {
					report(o.place(), "has %s", problem)
				}
			}
		},
	},
	{
		Name:        "conditions/summary",
		Level:       contract.Info,
		Contract:    infraClusterContract + "#infracluster-conditions",
		Requirement: "What core refers to has the condition Ready, or Available for a control plane.",
		Why:         "The conditions of the Cluster or Machine cannot show what is wrong with the object.",
		Remedy:      "Set the condition during the whole lifecycle of the object.",
		Check: func(g *graph, report reporter) {
			for _, l := range g.linked(infraCluster, infraMachine, infraPool, bootstrapConfig, controlPlane) {
				want := summaryCondition(l)
				if _, ok := l.target.condition(want); !ok && isInitialized(l) {
					report(l.target.place(), "has no condition %s", want)
				}
			}
		},
	},
}

// summaryCondition returns the type of the condition that core mirrors.
func summaryCondition(l link) string {
	if l.role == controlPlane && l.target.kind.contract == v1beta2 {
		return clusterv1.AvailableCondition
	}

	return clusterv1.ReadyCondition
}

var conditionStatuses = []string{
	string(metav1.ConditionTrue), string(metav1.ConditionFalse), string(metav1.ConditionUnknown),
}

// conditionProblem describes what is wrong with the conditions of an object. It returns "" if nothing is.
func conditionProblem(o *object) string {
	seen := map[string]bool{}

	for _, c := range o.conditions() {
		_, err := time.Parse(time.RFC3339, c.time)

		switch {
		case c.kind == "":
			return "a condition without a type"
		case seen[c.kind]:
			return "two conditions of the type " + quote(c.kind)
		case !slices.Contains(conditionStatuses, c.status):
			return "the condition " + quote(c.kind) + " with the status " + quote(c.status)
		case c.time != "" && err != nil:
			return "the condition " + quote(c.kind) + " with an invalid lastTransitionTime"
		}

		seen[c.kind] = true
	}

	return ""
}
