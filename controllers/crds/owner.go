package crds

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/webhooks"
)

// ownerAnnotation on a CRD is the namespace and the UID of the resource that it was applied for, as
// namespace/UID. The conversion webhooks in the CRD are those of the release in that namespace.
const ownerAnnotation = v1alpha2.Prefix + "/crd-owner"

// predecessors are field managers whose CRDs of the same provider are adopted without asking. They
// apply only when a user runs them, or are what Capstan replaces.
var predecessors = []string{"clusterctl", "capi-operator", "cluster-api-operator", "kubectl", v1alpha2.FieldOwner}

// checkOwnership checks whether the provider may take over a live CRD that was not applied for it in
// its present state.
func (a *Applier) checkOwnership(
	ctx context.Context, r Request, live *apiextensionsv1.CustomResourceDefinition,
) error {
	owner, err := a.otherOwner(ctx, r, live)
	if err != nil || owner == "" {
		return err
	}

	return Owned(live.Name, owner, r.Label)
}

// otherOwner returns what a live CRD belongs to; empty if that is the provider, its predecessors or
// nothing.
func (a *Applier) otherOwner(
	ctx context.Context, r Request, live *apiextensionsv1.CustomResourceDefinition,
) (string, error) {
	label := live.Labels[v1alpha2.ClusterctlProviderLabel]
	appliedByCapstan := IsApplied(live)

	switch {
	case live.Annotations[v1alpha2.AdoptCRDAnnotation] == r.Label:
		return "", nil
	case appliedByCapstan && label == r.Label:
		return a.otherInstallation(ctx, r, live)
	}

	if owner, err := a.otherRelease(ctx, r, live); owner != "" || err != nil {
		return owner, err
	}

	switch {
	case appliedByCapstan, label != "" && label != r.Label:
		return a.otherProvider(ctx, r, live)
	case label == "":
		return managersOf(live, anyManager), nil
	default:
		return managersOf(live, keepsApplying), nil
	}
}

// otherRelease returns the Helm release that a live CRD is part of; empty if it is the provider's own, or none. A
// release that is uninstalled leaves its CRDs with its marks.
func (a *Applier) otherRelease(
	ctx context.Context, r Request, live *apiextensionsv1.CustomResourceDefinition,
) (string, error) {
	release := helmRelease(live)
	if release.Name == "" || release.Namespace == r.Namespace && release.Name == r.Label {
		return "", nil
	}

	return a.installed(ctx, release, live)
}

// installed returns how messages call a Helm release that a live CRD belongs to; empty if it is not installed.
func (a *Applier) installed(
	ctx context.Context, release types.NamespacedName, live *apiextensionsv1.CustomResourceDefinition,
) (string, error) {
	if a.HasRelease == nil {
		return "", nil
	}

	installed, err := a.HasRelease(ctx, release)
	if err != nil {
		return "", fmt.Errorf("find out whether CustomResourceDefinition %s is in use: %w", live.Name, err)
	}

	if !installed {
		return "", nil
	}

	return "the Helm release " + release.String(), nil
}

// otherInstallation returns another release of the same provider that uses a live CRD: two resources would otherwise
// replace each other's CRDs without end. A CRD whose release is uninstalled is free.
func (a *Applier) otherInstallation(
	ctx context.Context, r Request, live *apiextensionsv1.CustomResourceDefinition,
) (string, error) {
	namespace, _, marked := strings.Cut(live.Annotations[ownerAnnotation], "/")
	if !marked || namespace == r.Namespace {
		return "", nil
	}

	return a.installed(ctx, types.NamespacedName{Namespace: namespace, Name: r.Release}, live)
}

// otherProvider returns the provider that a live CRD is labelled with; empty if that is not installed any more, or does
// not include the CRD. Another program may have installed it, unless Capstan has applied the CRD.
func (a *Applier) otherProvider(
	ctx context.Context, r Request, live *apiextensionsv1.CustomResourceDefinition,
) (string, error) {
	label := live.Labels[v1alpha2.ClusterctlProviderLabel]

	owns, err := r.Includes(ctx, label, live.Name)
	if err == nil && !owns && !IsApplied(live) && a.HasProvider != nil {
		owns, err = a.HasProvider(ctx, label)
	}

	if err != nil {
		return "", fmt.Errorf("find out whether CustomResourceDefinition %s is in use: %w", live.Name, err)
	}

	if !owns {
		return "", nil
	}

	return "the provider " + label, nil
}

func anyManager(metav1.ManagedFieldsEntry) bool { return true }

// keepsApplying reports whether a field manager uses server-side apply, as GitOps tools do, and is
// not a predecessor.
func keepsApplying(entry metav1.ManagedFieldsEntry) bool {
	return entry.Operation == metav1.ManagedFieldsOperationApply && !slices.Contains(predecessors, entry.Manager)
}

// helmRelease returns the Helm release that a CRD is marked as a part of; zero if there is none.
func helmRelease(live *apiextensionsv1.CustomResourceDefinition) types.NamespacedName {
	return types.NamespacedName{
		Namespace: live.Annotations[v1alpha2.HelmReleaseNamespaceAnnotation],
		Name:      live.Annotations[v1alpha2.HelmReleaseNameAnnotation],
	}
}

// managersOf returns the names of the field managers that wrote a CRD's versions and that match. The API server writes
// the status, and Helm does not own a CRD any more that is marked as a part of a release which is uninstalled.
func managersOf(
	live *apiextensionsv1.CustomResourceDefinition,
	matches func(metav1.ManagedFieldsEntry) bool,
) string {
	var names []string

	left := helmRelease(live).Name != ""

	for _, entry := range live.ManagedFields {
		if entry.Subresource != "" || left && entry.Manager == "helm" {
			continue
		}

		if matches(entry) && !slices.Contains(names, entry.Manager) {
			names = append(names, entry.Manager)
		}
	}

	return strings.Join(names, " and ")
}

// owner returns the value of the annotation ownerAnnotation.
func (r Request) owner() string { return r.Namespace + "/" + string(r.Resource) }

// IsAppliedFor reports whether a CRD was last applied for a resource.
func IsAppliedFor(definition *apiextensionsv1.CustomResourceDefinition, resource types.UID) bool {
	_, uid, marked := strings.Cut(definition.Annotations[ownerAnnotation], "/")

	return marked && uid == string(resource)
}

// IsApplied reports whether Capstan has applied a CRD.
func IsApplied(definition metav1.Object) bool {
	return definition.GetAnnotations()[digestAnnotation] != ""
}

// OfProvider filters CRDs with the label of a provider: it returns those that are part of the provider. Managers may
// create CRDs with the label at run time. So if Capstan has applied some of the CRDs, the others belong to the
// managers, except for those that spec leaves to users. spec may be nil.
func OfProvider[D metav1.Object](labelled []D, spec *v1alpha2.CRDsSpec) []D {
	if !slices.ContainsFunc(labelled, func(d D) bool { return IsApplied(d) }) {
		return labelled
	}

	leaves := func(name string) bool {
		return spec != nil && (slices.Contains(spec.Unmanaged, name) || spec.Policy == v1alpha2.CRDsNone ||
			spec.Policy == v1alpha2.CRDsCreateOnly)
	}

	return slices.DeleteFunc(slices.Clone(labelled), func(d D) bool { return !IsApplied(d) && !leaves(d.GetName()) })
}

// Unmark removes Capstan's annotations from the CRDs that were last applied for a resource of a provider. The CRDs
// stay as they are otherwise.
func (a *Applier) Unmark(ctx context.Context, label string, resource types.UID) error {
	labelled, err := a.labelled(ctx, label)
	if err != nil {
		return err
	}

	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null,%q:null,%q:null}}}`,
		digestAnnotation, versionAnnotation, ownerAnnotation)
	options := metav1.PatchOptions{FieldManager: v1alpha2.FieldOwner}

	return forEach(labelled, func(_ int, d apiextensionsv1.CustomResourceDefinition) error {
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

// OwnKinds returns the resources that a provider's CRDs define: the CRDs with its label in the cluster, and the CRDs of
// its current chart. It makes no request.
func (a *Applier) OwnKinds(ctx context.Context, label string) ([]schema.GroupResource, error) {
	labelled, err := a.labelled(ctx, label)
	if err != nil {
		return nil, err
	}

	names := a.includedCRDs(label)
	for i := range labelled {
		names.Insert(labelled[i].Name)
	}

	kinds := make([]schema.GroupResource, 0, len(names))
	for _, name := range sets.List(names) {
		kinds = append(kinds, schema.ParseGroupResource(name)) // a CRD's name is plural.group
	}

	return kinds, nil
}

// Injected returns the CRDs that are labelled with a provider, and whose conversion webhooks cert-manager injects a CA
// into.
func (a *Applier) Injected(ctx context.Context, label string) ([]webhooks.Injected, error) {
	labelled, err := a.labelled(ctx, label)

	var injected []webhooks.Injected

	for i := range labelled {
		if found := webhooks.OfDefinition(&labelled[i]); found != nil {
			injected = append(injected, *found)
		}
	}

	return injected, err
}

// Versions returns the resource versions of the CRDs that are labelled with a provider, by their names.
func (a *Applier) Versions(ctx context.Context, label string) (map[string]string, error) {
	labelled, err := a.labelled(ctx, label)
	versions := make(map[string]string, len(labelled))

	for i := range labelled {
		versions[labelled[i].Name] = labelled[i].ResourceVersion
	}

	return versions, err
}

// labelled returns the CRDs that are labelled with a provider. They must not be changed.
func (a *Applier) labelled(ctx context.Context, label string) ([]apiextensionsv1.CustomResourceDefinition, error) {
	list := &apiextensionsv1.CustomResourceDefinitionList{}

	ofProvider := client.MatchingLabels{v1alpha2.ClusterctlProviderLabel: label}
	if err := a.Client.List(ctx, list, ofProvider, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the CustomResourceDefinitions of %s: %w", label, err)
	}

	return list.Items, nil
}

// applied returns the CRDs that were applied for a provider. They must not be changed.
func (a *Applier) applied(ctx context.Context, label string) ([]apiextensionsv1.CustomResourceDefinition, error) {
	labelled, err := a.labelled(ctx, label)

	return slices.DeleteFunc(labelled, func(crd apiextensionsv1.CustomResourceDefinition) bool {
		return !IsApplied(&crd)
	}), err
}
