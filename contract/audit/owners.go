package audit

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"github.com/capstan-project/capstan/contract"
	"github.com/capstan-project/capstan/controllers/crds/versions"
)

// ownerRules are about owner references.
var ownerRules = []rule{
	{
		Name:        "owners/referenced",
		Level:       contract.Error,
		Contract:    contract.Clusterctl + "#ownerreferences-chain",
		Requirement: "A Cluster, Machine or MachinePool is the controller of what it refers to.",
		Why:         "It is left behind when the owner is deleted or moved, and its controller does not find the owner.",
		Remedy:      "Keep owner references when the provider updates its objects; core sets them again if it runs.",
		Check:       checkReferencedOwners,
	},
	{
		Name:        "owners/chain",
		Level:       contract.Warning,
		Contract:    contract.Clusterctl + "#ownerreferences-chain",
		Requirement: "Objects of a provider are linked to a Cluster by owner references.",
		Why:         "`clusterctl move` leaves the object behind, and it is not deleted with its Cluster.",
		Remedy: "Set an owner reference, for example to the object that it was created for, or, if it is shared by " +
			"Clusters, the label clusterctl.cluster.x-k8s.io/move-hierarchy.",
		Check: checkChains,
	},
	{
		Name:        "owners/exist",
		Level:       contract.Error,
		Contract:    ownerReferencesPage,
		Requirement: "Owners of an object exist, with the UID of the reference.",
		Why:         "Kubernetes deletes an object when all of its owners are gone.",
		Remedy:      "Remove the reference, or set the UID of the object that was created again.",
		Check: func(g *graph, report reporter) {
			for _, o := range g.objects {
				for _, ref := range o.GetOwnerReferences() {
					if g.owner(ref) == nil && g.isRead(groupKind(ref.APIVersion, ref.Kind)) {
						report(o.place(), "is owned by %s %s with the UID %s, which does not exist",
							ref.Kind, ref.Name, quote(ref.UID))
					}
				}
			}
		},
	},
	{
		Name:        "owners/api-version",
		Level:       contract.Warning,
		Contract:    ownerReferencesPage,
		Requirement: "Owner references have an API version that is served.",
		Why:         "Kubernetes cannot look up the owner, so the object is not deleted with it.",
		Remedy:      "Update the owner reference to the API version that the provider uses now.",
		Check:       checkOwnerVersions,
	},
}

func checkReferencedOwners(g *graph, report reporter) {
	for _, l := range g.links {
		if l.target == nil || !l.owned() {
			continue
		}

		found, controls := false, false

		for _, ref := range l.target.GetOwnerReferences() {
			if ref.UID == l.from.GetUID() {
				found, controls = true, ref.Controller != nil && *ref.Controller
			}
		}

		switch {
		case !found:
			report(l.target.place(), "is not owned by %s, which refers to it in %s", l.from, l.path())
		case !controls:
			report(l.target.place(), "is owned by %s, but not controlled by it", l.from)
		}
	}
}

// checkChains checks what `clusterctl move` would leave behind. An object that core refers to is the subject
// of owners/referenced.
func checkChains(g *graph, report reporter) {
	referenced := map[*object]bool{}

	for _, l := range g.links {
		if l.target != nil && l.owned() {
			referenced[l.target] = true
		}
	}

	for _, o := range g.objects {
		if referenced[o] || !o.kind.isNamespaced() || o.kind.additional || o.kind.isTemplate() || isMoved(o) {
			continue
		}

		found, certain := g.ancestor(o, isMovedWithDependents)
		if found == nil && certain {
			report(o.place(), "is not linked to a Cluster")
		}
	}
}

// withDependents are the kinds whose objects are moved with all objects that they own. Objects of the
// others are moved for reasons that are not owner references.
var withDependents = []schema.GroupKind{
	{Group: clusterv1.GroupVersion.Group, Kind: clusterv1.ClusterKind},
	{Group: clusterv1.GroupVersion.Group, Kind: "ClusterClass"},
	{Group: addonsv1.GroupVersion.Group, Kind: "ClusterResourceSet"},
	{Group: addonsv1.GroupVersion.Group, Kind: "ClusterResourceSetBinding"},
}

// isMovedWithDependents reports whether `clusterctl move` moves an object and all objects that it owns.
func isMovedWithDependents(o *object) bool {
	for _, gk := range withDependents {
		if o.kind.GroupKind == gk {
			return true
		}
	}

	return hasLabel(o, clusterctlv1.ClusterctlMoveHierarchyLabel)
}

// isMoved reports whether `clusterctl move` moves an object whatever its owners are.
func isMoved(o *object) bool {
	return hasLabel(o, clusterctlv1.ClusterctlMoveLabel) || isMovedWithDependents(o)
}

// hasLabel reports whether an object or its CRD has a label.
func hasLabel(o *object, label string) bool {
	_, own := o.GetLabels()[label]
	_, ofKind := o.kind.crd.Labels[label]

	return own || ofKind
}

func checkOwnerVersions(g *graph, report reporter) {
	for _, o := range g.objects {
		for _, ref := range o.GetOwnerReferences() {
			gv, err := schema.ParseGroupVersion(ref.APIVersion)
			owner := g.byGroup[gv.WithKind(ref.Kind).GroupKind()]

			if err != nil || owner == nil {
				continue
			}

			if v := versions.Find(owner.crd, gv.Version); v == nil || !v.Served {
				report(o.place(), "is owned by %s %s in version %s, which is not served", ref.Kind, ref.Name, quote(gv.Version))
			}
		}
	}
}
