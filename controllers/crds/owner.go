package crds

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Annotations that Helm puts on every object of a release.
const (
	helmReleaseAnnotation   = "meta.helm.sh/release-name"
	helmNamespaceAnnotation = "meta.helm.sh/release-namespace"
)

// predecessors are field managers that hand a provider's CRDs over without a word: they apply once,
// when a person tells them to, or their work is what Capstan takes over.
var predecessors = []string{"clusterctl", "capi-operator", "cluster-api-operator", "kubectl", v1alpha2.FieldOwner}

// OwnedError says that a CRD is somebody else's.
type OwnedError struct {
	// Name of the CRD.
	Name string
	// Owner is who looks after it, and Provider who would like to.
	Owner, Provider string
}

func (e *OwnedError) Error() string {
	return fmt.Sprintf(
		"CustomResourceDefinition %s belongs to %s, and %s brings it too; nothing was applied. Remove one of the two, "+
			"list it in spec.crds.unmanaged, or hand it over with the annotation %s: %s on it",
		e.Name,
		e.Owner,
		e.Provider,
		v1alpha2.AdoptCRDAnnotation,
		e.Provider,
	)
}

// arbitrate decides whether the provider may have a live CRD that was not applied for it as it is
// now.
func (r Request) arbitrate(ctx context.Context, live *apiextensionsv1.CustomResourceDefinition) error {
	label := live.Labels[v1alpha2.ClusterctlProviderLabel]
	applied := live.Annotations[digestAnnotation] != ""
	owner := ""

	switch helm := helmRelease(live); {
	case applied && label == r.Label, live.Annotations[v1alpha2.AdoptCRDAnnotation] == r.Label:
	case helm != "" && helm != r.Namespace+"/"+r.Label:
		owner = "the Helm release " + helm
	case applied:
		brings, err := r.Brings(ctx, label, live.Name)
		if err != nil {
			return err
		}

		if brings {
			owner = "the provider " + label
		}
	case label != "" && label != r.Label:
		owner = "the provider " + label
	case label == "":
		owner = managers(live, nil)
	default:
		owner = managers(live, func(m metav1.ManagedFieldsEntry) bool {
			return m.Operation == metav1.ManagedFieldsOperationApply && !slices.Contains(predecessors, m.Manager)
		})
	}

	if owner == "" {
		return nil
	}

	return &OwnedError{Name: live.Name, Owner: owner, Provider: r.Label}
}

// helmRelease is the release that a CRD is part of, as namespace/name.
func helmRelease(live *apiextensionsv1.CustomResourceDefinition) string {
	name := live.Annotations[helmReleaseAnnotation]
	if name == "" {
		return ""
	}

	return live.Annotations[helmNamespaceAnnotation] + "/" + name
}

// managers names those who wrote a CRD's versions, or of them those that count; empty when there
// are none.
func managers(live *apiextensionsv1.CustomResourceDefinition, counts func(metav1.ManagedFieldsEntry) bool) string {
	var names []string
	for _, entry := range live.ManagedFields {
		if (counts == nil || counts(entry)) && !slices.Contains(names, entry.Manager) {
			names = append(names, entry.Manager)
		}
	}

	return strings.Join(names, " and ")
}
