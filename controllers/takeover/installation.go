// Package takeover finds the installations of clusterctl, Helm and cluster-api-operator that Capstan takes over or
// leaves alone: providers in other namespaces, the version of an adopted provider, and the resources of
// cluster-api-operator.
package takeover

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/paging"
)

// maxObjects limits how many objects of a provider are looked at, and objectsPage how many at a time.
const maxObjects, objectsPage = 500, 10

// The resources that show where a provider is installed.
var (
	inventory   = clusterctlv1.GroupVersion.WithResource("providers")
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	services    = schema.GroupVersionResource{Version: "v1", Resource: "services"}
)

// Finder finds a provider that another program has installed.
type Finder struct {
	// Metadata reads the metadata of objects in all namespaces.
	Metadata metadata.Interface
	// Definitions reads CRDs, from a cache.
	Definitions client.Reader
	// Restricted is set for an operator that reads workloads only in the namespaces that it watches. It does not
	// look for Deployments in others.
	Restricted bool
	// Ignored reports whether what is found in a namespace does not count; nil if all does.
	Ignored func(namespace string) bool
}

func (f Finder) ignores(namespace string) bool { return f.Ignored != nil && f.Ignored(namespace) }

// Installation is where a provider was found.
type Installation struct {
	Namespace string
	// Claim is the object that shows it, for messages. Anyone may have created it.
	Claim string
}

// Elsewhere returns the installation of a provider that is in another namespace than its release; nil if there
// is none. It takes one request, one more if the cluster has clusterctl's inventory, and one more if the
// provider's CRDs refer to another namespace. What must not be read shows nothing.
func (f Finder) Elsewhere(ctx context.Context, label string, release types.NamespacedName) (*Installation, error) {
	for _, find := range f.ways() {
		found, err := find(ctx, label, release)
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			continue
		}

		if found != nil || err != nil {
			return found, err
		}
	}

	return nil, nil
}

// Anywhere reports whether a provider may be installed in the cluster, with as many requests as Elsewhere. It may be if
// something must not be read.
func (f Finder) Anywhere(ctx context.Context, label string) (bool, error) {
	none := types.NamespacedName{Name: label} // no release, and so no namespace, is left out

	for _, find := range f.ways() {
		found, err := find(ctx, label, none)

		switch {
		case found != nil, apierrors.IsForbidden(err):
			return true, nil
		case err != nil && !apierrors.IsNotFound(err):
			return false, err
		}
	}

	return false, nil
}

// ways are the ways to find a provider.
func (f Finder) ways() []func(context.Context, string, types.NamespacedName) (*Installation, error) {
	return []func(context.Context, string, types.NamespacedName) (*Installation, error){
		f.inInventory,
		f.byDeployment,
		f.byWebhook,
	}
}

// inInventory looks the provider up in clusterctl's inventory.
func (f Finder) inInventory(
	ctx context.Context, label string, release types.NamespacedName,
) (*Installation, error) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := f.Definitions.Get(ctx, client.ObjectKey{Name: inventory.GroupResource().String()}, definition); err != nil {
		return nil, err // usually because there is no such kind
	}

	// Those that Capstan keeps belong to other resources, which are compared elsewhere.
	foreign := func(item *metav1.PartialObjectMetadata) bool {
		return item.Labels[v1alpha2.ManagedByLabel] != v1alpha2.FieldOwner
	}

	item, err := f.find(ctx, inventory, label, release, foreign)
	if item == nil || err != nil {
		return nil, err
	}

	return &Installation{Namespace: item.Namespace, Claim: "clusterctl's inventory"}, nil
}

// byDeployment looks for a Deployment with the provider's label.
func (f Finder) byDeployment(
	ctx context.Context, label string, release types.NamespacedName,
) (*Installation, error) {
	if f.Restricted {
		return nil, nil
	}

	every := func(*metav1.PartialObjectMetadata) bool { return true }

	item, err := f.find(ctx, deployments, label, release, every)
	if item == nil || err != nil {
		return nil, err
	}

	found := &Installation{Namespace: item.Namespace, Claim: "Deployment " + item.Name}
	if helm := helmRelease(item); helm.Name != "" {
		found.Claim += fmt.Sprintf(" of Helm release %s", helm)
	}

	return found, nil
}

// byWebhook looks for the Service of a conversion webhook of the provider's CRDs.
func (f Finder) byWebhook(
	ctx context.Context, label string, release types.NamespacedName,
) (*Installation, error) {
	list := &apiextensionsv1.CustomResourceDefinitionList{}

	ofProvider := client.MatchingLabels{v1alpha2.ClusterctlProviderLabel: label}
	if err := f.Definitions.List(ctx, list, ofProvider, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the CustomResourceDefinitions of %s: %w", label, err)
	}

	for i := range list.Items {
		definition := &list.Items[i]

		service := conversionService(definition)
		if service == nil || service.Namespace == release.Namespace || f.ignores(service.Namespace) {
			continue
		}

		// All CRDs of a provider have the same webhook, so the first one decides.
		live, err := f.Metadata.Resource(services).Namespace(service.Namespace).
			Get(ctx, service.Name, metav1.GetOptions{})
		if err != nil || helmRelease(live) == release {
			return nil, err
		}

		claim := fmt.Sprintf("Service %s, which converts objects of CustomResourceDefinition %s",
			service.Name, definition.Name)

		return &Installation{Namespace: service.Namespace, Claim: claim}, nil
	}

	return nil, nil
}

// find returns an object that counts with the provider's label in another namespace, and that neither belongs to the
// release nor is being deleted; nil if there is none. Anyone may create such objects, so it reads few at a time.
func (f Finder) find(
	ctx context.Context,
	resource schema.GroupVersionResource,
	label string,
	release types.NamespacedName,
	counts func(*metav1.PartialObjectMetadata) bool,
) (*metav1.PartialObjectMetadata, error) {
	options := metav1.ListOptions{
		LabelSelector: labels.Set{v1alpha2.ClusterctlProviderLabel: label}.String(),
		Limit:         objectsPage,
	}
	read := 0

	for page, err := range paging.Pages(ctx, options, f.Metadata.Resource(resource).List) {
		if err != nil {
			return nil, err
		}

		for i := range page.Items {
			item := &page.Items[i]

			own := item.Namespace == release.Namespace || helmRelease(item) == release
			if !own && !f.ignores(item.Namespace) && item.DeletionTimestamp.IsZero() && counts(item) {
				return item, nil
			}
		}

		if read += len(page.Items); read >= maxObjects {
			break
		}
	}

	return nil, nil
}

// conversionService returns the Service of a CRD's conversion webhook; nil if it has none.
func conversionService(definition *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.ServiceReference {
	conversion := definition.Spec.Conversion
	if conversion == nil || conversion.Webhook == nil || conversion.Webhook.ClientConfig == nil {
		return nil
	}

	return conversion.Webhook.ClientConfig.Service
}

// helmRelease returns the Helm release that an object belongs to; zero if to none.
func helmRelease(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{
		Namespace: o.GetAnnotations()[v1alpha2.HelmReleaseNamespaceAnnotation],
		Name:      o.GetAnnotations()[v1alpha2.HelmReleaseNameAnnotation],
	}
}
