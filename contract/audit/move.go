package audit

import (
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"github.com/capstan-project/capstan/contract"
)

// moveRules are about `clusterctl move`. What it leaves behind because of owner references is the subject of
// owners/chain.
var moveRules = []rule{
	{
		Name:        "move/blocked",
		Level:       contract.Warning,
		Contract:    contract.Clusterctl + "#move",
		Requirement: "No object of a paused Cluster has the annotation clusterctl.cluster.x-k8s.io/block-move.",
		Why:         "`clusterctl move` waits for the provider to remove the annotation, and fails.",
		Remedy:      "Check that the provider's manager runs and removes the annotation once the object is paused.",
		Check: func(g *graph, report reporter) {
			for _, o := range g.objects {
				_, blocks := o.GetAnnotations()[clusterctlv1.BlockMoveAnnotation]
				if cluster := g.clusterOf(o); blocks && cluster != nil && cluster.flag("spec", "paused") {
					report(o.place(), "has the annotation %s, but %s is paused", clusterctlv1.BlockMoveAnnotation, cluster)
				}
			}
		},
	},
	{
		Name:        "move/interrupted",
		Level:       contract.Warning,
		Contract:    contract.Clusterctl + "#move",
		Requirement: "An object with the annotation clusterctl.cluster.x-k8s.io/delete-for-move is being deleted.",
		Why:         "A move was interrupted: the object may exist in two management clusters, and both manage it.",
		Remedy:      "Find out which cluster must manage the object, and run `clusterctl move` again or delete the other.",
		Check: func(g *graph, report reporter) {
			for _, o := range g.objects {
				_, moved := o.GetAnnotations()[clusterctlv1.DeleteForMoveAnnotation]
				if moved && o.GetDeletionTimestamp().IsZero() {
					report(o.place(), "has the annotation %s, but is not being deleted", clusterctlv1.DeleteForMoveAnnotation)
				}
			}
		},
	},
	{
		Name:        "move/cluster-scoped",
		Level:       contract.Warning,
		Contract:    contract.Clusterctl + "#move",
		Requirement: "Cluster-scoped objects, or their CRDs, have a label for `clusterctl move`.",
		Why:         "`clusterctl move` does not create the object in the other cluster, where what needs it fails.",
		Remedy: "Set the label clusterctl.cluster.x-k8s.io/move, or move-hierarchy to include the objects that it owns. " +
			"Such objects are created in the other cluster, but neither updated nor removed.",
		Check: func(g *graph, report reporter) {
			for _, o := range g.objects {
				if !o.kind.isNamespaced() && !o.kind.additional && !o.kind.isTemplate() && !isCoreGroup(o) && !isMoved(o) {
					report(o.place(), "is not moved: neither it nor its CRD has a label for that")
				}
			}
		},
	},
}

// isCoreGroup reports whether an object is of one of the API groups of core, whose cluster-scoped objects
// belong to a management cluster.
func isCoreGroup(o *object) bool {
	switch o.kind.Group {
	case clusterv1.GroupVersion.Group, "runtime.cluster.x-k8s.io", "addons.cluster.x-k8s.io", "ipam.cluster.x-k8s.io":
		return true
	}

	return false
}

// pausingRules are about objects whose reconciliation is paused.
var pausingRules = []rule{
	{
		Name:        "pausing/condition",
		Level:       contract.Warning,
		Contract:    infraClusterContract + "#infracluster-pausing",
		Requirement: "The condition Paused agrees with the Cluster and the object's annotation.",
		Why:         "A controller that does not pause changes objects during a move; one that does not resume is stuck.",
		Remedy:      "Check that the provider's manager runs, and that it watches spec.paused of Clusters.",
		Check:       checkPausedCondition,
	},
	{
		Name:        "pausing/respected",
		Level:       contract.Warning,
		Contract:    infraClusterContract + "#infracluster-pausing",
		Requirement: "Controllers do not change objects of a paused Cluster.",
		Why:         "During a move, two controllers manage the same machines, or the change is lost.",
		Remedy:      "Return early in the reconciler if annotations.IsPaused is true.",
		Check:       checkPausing,
	},
}

// isPaused reports whether the reconciliation of an object is paused. Cluster may be nil.
func isPaused(o, cluster *object) bool {
	_, annotated := o.GetAnnotations()[clusterv1.PausedAnnotation]

	return annotated || cluster != nil && cluster.flag("spec", "paused")
}

func checkPausedCondition(g *graph, report reporter) {
	for _, o := range g.objects {
		cluster := g.clusterOf(o)

		c, ok := o.condition(clusterv1.PausedCondition)
		if !ok || cluster == nil {
			continue
		}

		if paused := isPaused(o, cluster); paused && !c.isTrue() {
			report(o.place(), "is paused, but its condition %s is %s", c.kind, quote(c.status))
		} else if !paused && c.isTrue() {
			report(o.place(), "is not paused, but its condition %s is %s", c.kind, quote(c.status))
		}
	}
}

// pauseDelay is how long a controller may take until it notices that a Cluster is paused.
const pauseDelay = time.Minute

// checkPausing finds providers' objects that were changed after their Cluster was paused. Changes of the
// status do not count: it may report that the object is paused.
func checkPausing(g *graph, report reporter) {
	for _, o := range g.objects {
		cluster := g.clusterOf(o)
		if cluster == nil || o.kind.additional || isCoreGroup(o) || !cluster.flag("spec", "paused") {
			continue
		}

		c, _ := cluster.condition(clusterv1.PausedCondition)

		since, err := time.Parse(time.RFC3339, c.time)
		if err != nil || !c.isTrue() || o.GetCreationTimestamp().After(since) {
			continue
		}

		for _, entry := range o.GetManagedFields() {
			changed := entry.Time != nil && entry.Time.After(since.Add(pauseDelay)) && entry.Subresource == ""
			if changed && !isUserTool(entry.Manager) {
				report(o.place(), "was changed by %s at %s, but %s is paused since %s",
					quote(entry.Manager), timeText(entry.Time.Time), cluster, timeText(since))
			}
		}
	}
}

// isUserTool reports whether a field manager is a program that users run.
func isUserTool(manager string) bool {
	return strings.HasPrefix(manager, "kubectl") || strings.HasPrefix(manager, "clusterctl")
}
