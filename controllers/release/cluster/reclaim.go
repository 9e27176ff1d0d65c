package cluster

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/capstan-project/capstan/controllers/predecessor"
)

// installers are field managers that apply the components of a provider as a whole. Those that change single fields,
// such as kubectl-edit or kubectl-rollout, are not among them.
var installers = []string{
	"clusterctl", predecessor.FieldManager, "kubectl", "kubectl-client-side-apply", "kubectl-create", "kubectl-replace",
}

// predecessorBinary is the field manager of cluster-api-operator where it sets none. Most managers of providers have
// the same one, so it counts only on objects that cluster-api-operator has applied.
const predecessorBinary = "manager"

// reclaimableFields returns a copy of an object that has only the fields that were set by a program which Capstan
// replaces, given the target that the object becomes; nil if there are none. When the object is adopted, those that its
// chart does not have are removed, as if an earlier revision had set them. No later revision would do that: an old
// container would stay in a Deployment for good if adoption and upgrade are one step.
//
// The fields belong to an installer and to no other program. These are never among them:
//   - the content of Secrets and ConfigMaps, which can be data of users
//   - metadata other than labels and annotations
//   - certificates in caBundle, which programs fill in that have the same names
//   - fields in a part that the target does not have, and that has fields of another program
func reclaimableFields(live, target *unstructured.Unstructured) *unstructured.Unstructured {
	if kind := live.GetKind(); kind == "Secret" || kind == "ConfigMap" {
		return nil
	}

	owned, others := owners(live)

	var fields any

	for path := range owned.Leaves().All() {
		if isReclaimable(path) && !isShared(path, target.Object, others) {
			fields = withPart(fields, live.Object, path)
		}
	}

	if fields == nil {
		return nil
	}

	return &unstructured.Unstructured{Object: fields.(map[string]any)}
}

// owners returns the fields that belong to installers, and those that belong to other programs.
func owners(live *unstructured.Unstructured) (owned, others *fieldpath.Set) {
	entries := live.GetManagedFields()
	ofPredecessor := slices.ContainsFunc(entries, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == predecessor.FieldManager
	})

	owned, others = &fieldpath.Set{}, &fieldpath.Set{}

	for _, entry := range entries {
		fields := &fieldpath.Set{}
		if entry.FieldsV1 == nil || fields.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
			continue
		}

		isInstaller := slices.Contains(installers, entry.Manager) || ofPredecessor && entry.Manager == predecessorBinary
		if isInstaller && entry.Subresource == "" {
			owned = owned.Union(fields)
		} else {
			others = others.Union(fields)
		}
	}

	return owned, others
}

// isReclaimable reports whether a field is one that a chart can have, and that no other program fills in.
func isReclaimable(path fieldpath.Path) bool {
	switch fieldName(path[0]) {
	case "metadata":
		return len(path) == 3 && (fieldName(path[1]) == "labels" || fieldName(path[1]) == "annotations")
	case "status":
		return false
	}

	return fieldName(path[len(path)-1]) != "caBundle"
}

// isShared reports whether to remove a field would remove what another program has set: the field itself, or a part of
// the outermost field around it that the target does not have. Items of lists are removed with all of their parts.
func isShared(path fieldpath.Path, target any, others *fieldpath.Set) bool {
	for i, element := range path {
		if next, found := partAt(target, element); found && i < len(path)-1 {
			target, others = next, others.WithPrefix(element)
			continue
		}

		return others.Members.Has(element) || element.FieldName != nil && !others.WithPrefix(element).Empty()
	}

	return false
}

// fieldName returns the name of a field in an object; empty for an item of a list.
func fieldName(element fieldpath.PathElement) string { return ptr.Deref(element.FieldName, "") }
