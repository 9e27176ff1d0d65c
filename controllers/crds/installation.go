package crds

import (
	"context"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

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
