package crds

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/crds/versions"
)

// State describes how Capstan manages a CRD.
type State string

// The states of a CRD.
const (
	// Managed means that Capstan applies the CRD for an installed provider.
	Managed State = "Managed"
	// Orphaned means that Capstan applied the CRD for a provider that no longer exists or no longer
	// includes it.
	Orphaned State = "Orphaned"
	// Unmanaged means that Capstan does not apply the CRD.
	Unmanaged State = "Unmanaged"
	// Migrating means that the CRD's objects are being rewritten.
	Migrating State = "Migrating"
	// Deleting means that the CRD is being deleted.
	Deleting State = "Deleting"
)

// Item is a provider's CRD in an inventory.
type Item struct {
	Name string `json:"name"`
	// Provider is the label of the provider that the CRD belongs to.
	Provider string `json:"provider"`
	// Version is the version of the provider that the CRD was applied for; empty if Capstan did not
	// apply it.
	Version string `json:"version,omitempty"`
	// Resource is the provider's resource, as Kind namespace/name; empty if there is none.
	Resource  string `json:"resource,omitempty"`
	Namespace string `json:"-"`
	// Served are the served versions.
	Served []string `json:"served"`
	// Storage is the version in which objects are stored now.
	Storage string `json:"storage"`
	// Stored are all versions in which objects may be stored.
	Stored []string `json:"stored"`
	// Objects is the number of objects; nil if it is unknown.
	Objects  *int64    `json:"objects,omitempty"`
	State    State     `json:"state"`
	Progress *Progress `json:"progress,omitempty"`
}

// Inventory returns the CRDs of all providers, by provider and name. The providers are all resources
// in the cluster. The reader reads CRDs, and objects counts their objects.
func Inventory(
	ctx context.Context,
	reader client.Reader,
	objects metadata.Interface,
	providers []v1alpha2.Provider,
) ([]Item, error) {
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := reader.List(ctx, list, client.HasLabels{v1alpha2.ClusterctlProviderLabel}); err != nil {
		return nil, fmt.Errorf("list CustomResourceDefinitions: %w", err)
	}

	items := make([]Item, len(list.Items))

	err := forEach(list.Items, func(i int, _ apiextensionsv1.CustomResourceDefinition) error {
		items[i] = newItem(&list.Items[i], providers)
		items[i].Objects = countObjects(ctx, objects, &list.Items[i])

		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}

	slices.SortFunc(items, func(a, b Item) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Name, b.Name))
	})

	return items, nil
}

func newItem(crd *apiextensionsv1.CustomResourceDefinition, providers []v1alpha2.Provider) Item {
	item := Item{
		Name:     crd.Name,
		Provider: crd.Labels[v1alpha2.ClusterctlProviderLabel],
		Version:  crd.Annotations[versionAnnotation],
		Served:   versions.Served(crd),
		Storage:  versions.StorageName(crd),
		Stored:   crd.Status.StoredVersions,
	}

	var provider v1alpha2.Provider

	for _, p := range providers {
		if v1alpha2.Label(p) == item.Provider {
			provider = p
			item.Namespace = p.GetNamespace()
			item.Resource = v1alpha2.FullName(p)
		}
	}

	item.State = stateOf(crd, provider)
	if item.State == Migrating {
		m := parseMigration(crd)
		item.Progress = &Progress{CRD: crd.Name, Done: m.Done, Total: m.Total}
	}

	return item
}

// stateOf returns the state of a CRD. The provider is nil if it has no resource.
func stateOf(crd *apiextensionsv1.CustomResourceDefinition, provider v1alpha2.Provider) State {
	m := parseMigration(crd)

	switch {
	case !crd.DeletionTimestamp.IsZero():
		return Deleting
	case crd.Annotations[digestAnnotation] == "", provider != nil && isUnmanaged(provider, crd.Name):
		return Unmanaged
	case provider == nil, slices.Contains(provider.GetStatus().OrphanedCRDs, crd.Name):
		return Orphaned
	case m.To != "" && !m.Finished:
		return Migrating
	default:
		return Managed
	}
}

// isUnmanaged reports whether a provider's resource excludes a CRD.
func isUnmanaged(provider v1alpha2.Provider, crd string) bool {
	spec := provider.GetSpec().CRDs

	return spec != nil && (spec.Policy == v1alpha2.CRDsNone || slices.Contains(spec.Unmanaged, crd))
}

// countObjects returns the number of a CRD's objects, or nil if it cannot be found out. It reads only
// one object; the API server tells how many remain.
func countObjects(
	ctx context.Context,
	objects metadata.Interface,
	crd *apiextensionsv1.CustomResourceDefinition,
) *int64 {
	version := versions.Preferred(crd)
	if version == nil {
		return nil
	}

	resource := versions.Resource(crd, version.Name)

	list, err := objects.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil
	}

	n := int64(len(list.Items))
	if remaining := list.GetRemainingItemCount(); remaining != nil {
		n += *remaining
	}

	return &n
}
