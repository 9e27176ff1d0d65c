package audit

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/capstan-project/capstan/contract"
)

// referenceRules are about the references from core's objects to those of providers.
var referenceRules = []rule{
	{
		Name:        "references/exist",
		Level:       contract.Error,
		Contract:    ownerReferencesPage,
		Requirement: "The objects that Clusters, Machines and control planes refer to exist.",
		Why:         "The Cluster or Machine never becomes ready, or cannot be deleted.",
		Remedy:      "Create the object again, or delete the object that refers to it.",
		Check: func(g *graph, report reporter) {
			for _, l := range g.links {
				isHere := l.to.Namespace == l.from.GetNamespace() // otherwise it is the subject of references/namespace
				if isHere && l.target == nil && g.isRead(l.to.GroupKind) && l.from.GetDeletionTimestamp().IsZero() {
					report(l.from.place(g.byGroup[l.to.GroupKind].provider), "refers in %s to %s %s, which does not exist",
						l.path(), l.to.Kind, nameOf(l.to.Namespace, l.to.Name))
				}
			}
		},
	},
	{
		Name:        "references/namespace",
		Level:       contract.Error,
		Contract:    controlPlaneContract + "#controlplane-machines",
		Requirement: "References do not leave the namespace of their object.",
		Why:         "Owner references cannot cross namespaces, and `clusterctl move` moves one namespace.",
		Remedy:      "Create the object in the same namespace, and refer to it there.",
		Check: func(g *graph, report reporter) {
			for _, l := range g.links {
				if l.to.Namespace != l.from.GetNamespace() {
					report(l.from.place(), "refers in %s to the namespace %s", l.path(), quote(l.to.Namespace))
				}
			}
		},
	},
	{
		Name:        "references/cluster-name",
		Level:       contract.Error,
		Contract:    "https://cluster-api.sigs.k8s.io/reference/api/labels-and-annotations",
		Requirement: "What a Cluster or Machine refers to has the label cluster.x-k8s.io/cluster-name.",
		Why:         "Controllers that watch objects by this label do not find the object, or its Cluster.",
		Remedy:      "Keep labels of others when the provider updates its objects; core sets the label again.",
		Check: func(g *graph, report reporter) {
			for _, l := range g.links {
				if l.target == nil || !l.owned() {
					continue
				}

				want := l.from.text("spec", "clusterName")
				if l.from.is(clusterv1.ClusterKind) {
					want = l.from.GetName()
				}

				checkClusterName(l.target.place(), l.target.GetLabels(), want, report)
			}
		},
	},
}

// checkClusterName checks the label of what belongs to a Cluster. An empty name means that the Cluster is
// unknown.
func checkClusterName(at place, labels map[string]string, cluster string, report reporter) {
	if name, ok := labels[clusterv1.ClusterNameLabel]; !ok {
		report(at, "lacks the label %s", clusterv1.ClusterNameLabel)
	} else if cluster != "" && name != cluster {
		report(at, "has the label %s=%s, but belongs to Cluster %s", clusterv1.ClusterNameLabel, name, cluster)
	}
}
