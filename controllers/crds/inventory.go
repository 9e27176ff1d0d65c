package crds

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// State is how a provider's CRD is looked after.
type State string

// The states of a CRD.
const (
	// Managed: Capstan applies it for an installed provider.
	Managed State = "Managed"
	// Orphaned: Capstan applied it for a provider that is gone, or that no longer brings it.
	Orphaned State = "Orphaned"
	// Unmanaged: it is somebody else's to apply.
	Unmanaged State = "Unmanaged"
	// Migrating: its objects are being rewritten.
	Migrating State = "Migrating"
	// Deleting: somebody is deleting it.
	Deleting State = "Deleting"
)

// Item is one CRD of a provider, of an inventory.
type Item struct {
	Name string `json:"name"`
	// Provider is the label of the provider that it belongs to, and Version the one of the provider
	// that it came with, if Capstan applied it.
	Provider string `json:"provider"`
	Version  string `json:"version,omitempty"`
	// Resource is the provider's resource, as Kind namespace/name; empty when there is none.
	Resource  string `json:"resource,omitempty"`
	Namespace string `json:"-"`
	// Served are the versions that are served, Storage the one that objects are stored in, and
	// Stored those that they may be in.
	Served  []string `json:"served"`
	Storage string   `json:"storage"`
	Stored  []string `json:"stored"`
	// Objects is how many there are; nil when that could not be found out.
	Objects  *int64    `json:"objects,omitempty"`
	State    State     `json:"state"`
	Progress *Progress `json:"progress,omitempty"`
}

// Inventory lists the CRDs of all providers, by provider and name. Providers are the resources of
// the whole cluster.
func (a *Applier) Inventory(ctx context.Context, providers []v1alpha2.Provider) ([]Item, error) {
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := a.Live.List(ctx, list, client.HasLabels{v1alpha2.ClusterctlProviderLabel}); err != nil {
		return nil, fmt.Errorf("list CustomResourceDefinitions: %w", err)
	}

	entries := make([]Item, len(list.Items))
	if err := each(list.Items, func(i int, _ apiextensionsv1.CustomResourceDefinition) error {
		entries[i] = a.entry(ctx, &list.Items[i], providers)
		return ctx.Err()
	}); err != nil {
		return nil, err
	}

	slices.SortFunc(entries, func(a, b Item) int {
		return slices.Compare([]string{a.Provider, a.Name}, []string{b.Provider, b.Name})
	})

	return entries, nil
}

func (a *Applier) entry(
	ctx context.Context,
	crd *apiextensionsv1.CustomResourceDefinition,
	providers []v1alpha2.Provider,
) Item {
	e := Item{
		Name: crd.Name, Provider: crd.Labels[v1alpha2.ClusterctlProviderLabel], Version: crd.Annotations[versionAnnotation],
		Storage: storage(crd), Stored: crd.Status.StoredVersions, Objects: a.count(ctx, crd),
	}
	for _, v := range crd.Spec.Versions {
		if v.Served {
			e.Served = append(e.Served, v.Name)
		}
	}

	var provider v1alpha2.Provider

	for _, p := range providers {
		if v1alpha2.Label(p) == e.Provider {
			provider = p
			e.Namespace = p.GetNamespace()
			e.Resource = fmt.Sprintf("%s %s/%s", p.ProviderType(), p.GetNamespace(), p.GetName())
		}
	}

	m := migration{}
	// of another version of this code: then it is not shown
	_ = json.Unmarshal([]byte(crd.Annotations[migrationAnnotation]), &m)
	switch {
	case !crd.DeletionTimestamp.IsZero():
		e.State = Deleting
	case crd.Annotations[digestAnnotation] == "", provider != nil && unmanaged(provider, crd.Name):
		e.State = Unmanaged
	case provider == nil, slices.Contains(provider.GetStatus().OrphanedCRDs, crd.Name):
		e.State = Orphaned
	case m.To != "" && !m.Finished:
		e.State, e.Progress = Migrating, &Progress{CRD: crd.Name, Done: m.Done, Total: m.Total}
	default:
		e.State = Managed
	}

	return e
}

// unmanaged reports whether a resource leaves a CRD to others.
func unmanaged(provider v1alpha2.Provider, crd string) bool {
	spec := provider.GetSpec().CRDs
	return spec != nil && (spec.Policy == v1alpha2.CRDsNone || slices.Contains(spec.Unmanaged, crd))
}

// count asks for one object, and how many more there are.
func (a *Applier) count(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) *int64 {
	version, err := servedVersion(crd)
	if err != nil {
		return nil
	}

	resource := schema.GroupVersionResource{Group: crd.Spec.Group, Version: version.Name, Resource: crd.Spec.Names.Plural}

	list, err := a.Writer.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil
	}

	n := int64(len(list.Items))
	if rest := list.GetRemainingItemCount(); rest != nil {
		n += *rest
	}

	return &n
}
