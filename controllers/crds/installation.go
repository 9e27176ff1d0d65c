package crds

import (
	"context"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// ownerAnnotation on a CRD is the namespace and the UID of the resource that it was applied for, as
// namespace/UID. The conversion webhooks in the CRD are those of the release in that namespace.
const ownerAnnotation = v1alpha2.Prefix + "/crd-owner"

// owner returns the value of the annotation ownerAnnotation.
func (r Request) owner() string { return r.Namespace + "/" + string(r.Resource) }

// IsAppliedFor reports whether a CRD was last applied for a resource.
func IsAppliedFor(definition *apiextensionsv1.CustomResourceDefinition, resource types.UID) bool {
	_, uid, marked := strings.Cut(definition.Annotations[ownerAnnotation], "/")

	return marked && uid == string(resource)
}

// Unmark removes Capstan's annotations from the CRDs that were last applied for a resource of a provider. The CRDs
// stay as they are otherwise.
func (a *Applier) Unmark(ctx context.Context, label string, resource types.UID) error {
	list := &apiextensionsv1.CustomResourceDefinitionList{}

	ofProvider := client.MatchingLabels{v1alpha2.ClusterctlProviderLabel: label}
	if err := a.Client.List(ctx, list, ofProvider, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the CustomResourceDefinitions of %s: %w", label, err)
	}

	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null,%q:null,%q:null}}}`,
		digestAnnotation, versionAnnotation, ownerAnnotation)
	options := metav1.PatchOptions{FieldManager: v1alpha2.FieldOwner}

	return forEach(list.Items, func(_ int, d apiextensionsv1.CustomResourceDefinition) error {
		if !IsAppliedFor(&d, resource) {
			return nil
		}

		_, err := a.Metadata.Resource(crdResource).Patch(ctx, d.Name, types.MergePatchType, patch, options)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("remove the annotations of CustomResourceDefinition %s: %w", d.Name, err)
		}

		return nil
	})
}

// checkInstallation checks that a live CRD is not in use by another release of the same provider: two
// resources would otherwise replace each other's CRDs without end. A CRD whose release is uninstalled is
// free.
func (a *Applier) checkInstallation(
	ctx context.Context, r Request, live *apiextensionsv1.CustomResourceDefinition,
) error {
	namespace, _, marked := strings.Cut(live.Annotations[ownerAnnotation], "/")
	adopted := live.Annotations[v1alpha2.AdoptCRDAnnotation] == r.Label

	if !marked || adopted || namespace == r.Namespace || a.HasRelease == nil ||
		live.Labels[v1alpha2.ClusterctlProviderLabel] != r.Label {
		return nil
	}

	release := types.NamespacedName{Namespace: namespace, Name: r.Release}

	installed, err := a.HasRelease(ctx, release)
	if err != nil {
		return fmt.Errorf("find out whether CustomResourceDefinition %s is in use: %w", live.Name, err)
	}

	if !installed {
		return nil
	}

	return &OwnershipError{Name: live.Name, Owner: "the Helm release " + release.String(), Provider: r.Label}
}
