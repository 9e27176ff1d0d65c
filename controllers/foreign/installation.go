package foreign

import (
	"context"
	"fmt"
	"slices"
	"time"

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
	"github.com/capstan-project/capstan/controllers/fresh"
)

// maxObjects limits how many objects of a provider are looked at.
const maxObjects = 500

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
	// Objects are the provider label and namespace of all objects, from lists that searches for several providers share;
	// nil to list those of each provider, which would be a tenth more requests when small providers are installed.
	Objects *fresh.Shared[Labeled]
	// Since is a time that Objects have to show at least.
	Since time.Time
	// Restricted is set for an operator that reads workloads only in the namespaces that it watches. It does not
	// look for Deployments in others.
	Restricted bool
	// Ignored reports whether what is found in a namespace does not count; nil if all does.
	Ignored func(namespace string) bool
}

func (f Finder) ignores(namespace string) bool { return f.Ignored != nil && f.Ignored(namespace) }

// Labeled is an object with the label of a provider.
type Labeled struct{ Label, Namespace string }

// NewObjects returns the lists for Finder.Objects.
func NewObjects(client metadata.Interface) *fresh.Shared[Labeled] {
	return fresh.NewShared(client, v1alpha2.ClusterctlProviderLabel, func(o *metav1.PartialObjectMetadata) Labeled {
		return Labeled{Label: o.Labels[v1alpha2.ClusterctlProviderLabel], Namespace: o.Namespace}
	})
}

// Installation is where a provider was found.
type Installation struct {
	Namespace string
	// Claim is the object that shows it, for messages. Anyone may have created it.
	Claim string
}

// Elsewhere returns the installation of a provider that is in another namespace than its release; nil if there
// is none. It takes one request, one more if the cluster has clusterctl's inventory, and one more if the
// provider's CRDs refer to another namespace; with Objects, usually only the last. What must not be read shows nothing.
func (f Finder) Elsewhere(ctx context.Context, label string, release types.NamespacedName) (*Installation, error) {
	for _, find := range []func(context.Context, string, types.NamespacedName) (*Installation, error){
		f.inInventory,
		f.byDeployment,
		f.byWebhook,
	} {
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

// inInventory looks the provider up in clusterctl's inventory.
func (f Finder) inInventory(
	ctx context.Context, label string, release types.NamespacedName,
) (*Installation, error) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := f.Definitions.Get(ctx, client.ObjectKey{Name: inventory.GroupResource().String()}, definition); err != nil {
		return nil, err // usually because there is no such kind
	}

	items, err := f.list(ctx, inventory, label, release)

	// Those that Capstan keeps belong to other resources, which are compared elsewhere.
	items = slices.DeleteFunc(items, func(item metav1.PartialObjectMetadata) bool {
		return item.Labels[v1alpha2.ManagedByLabel] == v1alpha2.FieldOwner
	})
	if err != nil || len(items) == 0 {
		return nil, err
	}

	return &Installation{Namespace: items[0].Namespace, Claim: "clusterctl's inventory"}, nil
}

// byDeployment looks for a Deployment with the provider's label.
func (f Finder) byDeployment(
	ctx context.Context, label string, release types.NamespacedName,
) (*Installation, error) {
	if f.Restricted {
		return nil, nil
	}

	items, err := f.list(ctx, deployments, label, release)
	if err != nil || len(items) == 0 {
		return nil, err
	}

	found := &Installation{Namespace: items[0].Namespace, Claim: "Deployment " + items[0].Name}
	if helm := helmRelease(&items[0]); helm.Name != "" {
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

// list returns the objects with the provider's label in other namespaces that neither belong to the release
// nor are being deleted.
func (f Finder) list(
	ctx context.Context, resource schema.GroupVersionResource, label string, release types.NamespacedName,
) ([]metav1.PartialObjectMetadata, error) {
	if !f.mayExist(ctx, resource, label, release) {
		return nil, nil
	}

	list, err := f.Metadata.Resource(resource).List(ctx, metav1.ListOptions{
		LabelSelector: labels.Set{v1alpha2.ClusterctlProviderLabel: label}.String(),
		Limit:         maxObjects,
	})
	if err != nil {
		return nil, err
	}

	others := list.Items[:0]

	for _, item := range list.Items {
		own := item.Namespace == release.Namespace || helmRelease(&item) == release
		if !own && !f.ignores(item.Namespace) && item.DeletionTimestamp.IsZero() {
			others = append(others, item)
		}
	}

	return others, nil
}

// mayExist reports whether objects with the provider's label may be in other namespaces than the release. A shared list
// tells that there are none. What it shows may be gone since, so that is read again.
func (f Finder) mayExist(
	ctx context.Context, resource schema.GroupVersionResource, label string, release types.NamespacedName,
) bool {
	if f.Objects == nil {
		return true
	}

	objects, err := f.Objects.List(ctx, resource, f.Since)

	return err != nil || slices.ContainsFunc(objects, func(o Labeled) bool {
		return o.Label == label && o.Namespace != release.Namespace
	})
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
