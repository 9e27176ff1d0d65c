// Package usage reports whether a provider is in use: which objects exist of the kinds that its CRDs
// define, other than those that came with the provider itself. This is checked before a provider is
// removed, because nothing reconciles these objects afterwards, and most of them have finalizers
// that only the provider removes.
package usage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/crds"
	"github.com/capstan-project/capstan/controllers/crds/versions"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/paging"
)

const (
	// concurrency limits the requests in flight.
	concurrency = 8
	// pageSize is how many objects of a kind one request reads: as large as possible, they are 30 MiB.
	pageSize = 20
	// maxListing limits the listing of one kind. The API server itself takes no longer for a page.
	maxListing = time.Minute
	// maxExamples is how many objects of a kind are named.
	maxExamples = 2
)

// Finder finds objects of providers' kinds.
type Finder struct {
	// Client reads CRDs, from a cache that may omit their schemas.
	Client client.Reader
	// Metadata lists the objects' metadata at the API server.
	Metadata metadata.Interface
	// Counter counts the objects that Metadata is not permitted to list; nil for none. They are not
	// named.
	Counter metadata.Interface
}

// Query selects objects.
type Query struct {
	// Provider is the label of the provider that defines the kinds; empty means all providers.
	Provider string
	// CRDs is spec.crds of the provider, which may be nil, and Types are the types of objects that it manages besides
	// those of its own CRDs. Only used with a provider.
	CRDs  *v1alpha2.CRDsSpec
	Types []v1alpha2.ManagedType
	// Namespace of the objects; empty means all namespaces, including cluster-scoped objects.
	Namespace string
	// Ignored are objects that do not count, because they came with the provider.
	Ignored []object.Key
}

// Find finds objects. It reads only their metadata, and in the version in which they are stored, so
// that usually none has to be converted and a broken conversion webhook does no harm.
//
// A kind that no longer exists is not in use. One that cannot be read is in the result, with the
// reason. The error means that the CRDs could not be read.
func (f *Finder) Find(ctx context.Context, q Query) (Usage, error) {
	definitions, err := f.definitions(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("list the CustomResourceDefinitions of %s: %w", cmp.Or(q.Provider, "all providers"), err)
	}

	ignored := ignoredObjects(q.Ignored)
	kinds := make([]Kind, len(definitions))

	var group errgroup.Group
	group.SetLimit(concurrency)

	for i := range definitions {
		group.Go(func() error {
			kinds[i] = f.find(ctx, &definitions[i], q.Namespace, ignored)

			return ctx.Err()
		})
	}

	if err := group.Wait(); err != nil {
		return nil, err
	}

	kinds = slices.DeleteFunc(kinds, func(k Kind) bool { return k.Count == 0 && k.Problem == "" })
	slices.SortFunc(kinds, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})

	return kinds, nil
}

// definitions returns the CRDs of the kinds that a query asks for.
func (f *Finder) definitions(ctx context.Context, q Query) ([]apiextensionsv1.CustomResourceDefinition, error) {
	var selector []client.ListOption

	switch {
	case q.Provider == "":
		selector = []client.ListOption{client.HasLabels{v1alpha2.ClusterctlProviderLabel}}
	case len(q.Types) == 0:
		selector = []client.ListOption{client.MatchingLabels{v1alpha2.ClusterctlProviderLabel: q.Provider}}
	}

	found := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := f.Client.List(ctx, found, selector...); err != nil {
		return nil, err
	}

	if q.Provider == "" {
		return found.Items, nil
	}

	var labelled []*apiextensionsv1.CustomResourceDefinition

	for i := range found.Items {
		if found.Items[i].Labels[v1alpha2.ClusterctlProviderLabel] == q.Provider {
			labelled = append(labelled, &found.Items[i])
		}
	}

	parts := crds.OfProvider(labelled, q.CRDs)

	return slices.DeleteFunc(found.Items, func(crd apiextensionsv1.CustomResourceDefinition) bool {
		isPart := slices.ContainsFunc(parts, func(o *apiextensionsv1.CustomResourceDefinition) bool {
			return o.Name == crd.Name
		})

		return !isPart && !Manages(q.Types, q.Provider, &crd)
	}), nil
}

// find finds the objects of one kind.
func (f *Finder) find(
	ctx context.Context,
	crd *apiextensionsv1.CustomResourceDefinition,
	namespace string,
	ignored map[objectID]bool,
) Kind {
	version := versions.Preferred(crd)
	if version == nil {
		return Kind{
			Name:    crd.Name,
			Problem: "none of its versions is served; serve one, or delete the CustomResourceDefinition",
		}
	}

	ctx, cancel := context.WithTimeout(ctx, maxListing)
	defer cancel()

	resource := versions.Resource(crd, version.Name)

	found, err := list(ctx, crd, f.Metadata.Resource(resource).Namespace(namespace), ignored)
	if apierrors.IsForbidden(err) && f.Counter != nil {
		found, err = list(ctx, crd, f.Counter.Resource(resource).Namespace(namespace), ignored)
		found.Examples, found.Clusters = nil, nil
	}

	if err != nil && !apierrors.IsNotFound(err) { // the kind no longer exists
		found.Problem = problem(crd, err)
	}

	return found
}

// list lists the objects of one kind.
func list(
	ctx context.Context,
	crd *apiextensionsv1.CustomResourceDefinition,
	objects metadata.ResourceInterface,
	ignored map[objectID]bool,
) (Kind, error) {
	k := Kind{Name: crd.Name}
	groupKind := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}

	for page, err := range paging.Pages(paging.WithoutWaiting(ctx), metav1.ListOptions{Limit: pageSize}, objects.List) {
		if err != nil {
			return k, err
		}

		for i := range page.Items {
			o := &page.Items[i]
			if !ignored[objectID{groupKind, o.Namespace, o.Name}] {
				k.add(o)
			}
		}

		// Once an object was found, the others are only counted. Until then, those on the next page
		// could be the provider's own as well.
		if k.Count > 0 {
			if page.RemainingItemCount != nil {
				k.Count += *page.RemainingItemCount
			}

			return k, nil
		}
	}

	return k, nil
}

// problem returns why a kind cannot be read, and what to do about it.
func problem(crd *apiextensionsv1.CustomResourceDefinition, err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "the API server takes too long"
	}

	if unconverted := versions.ConversionProblem(crd, err); unconverted != "" {
		return unconverted
	}

	return object.Reason(crd.Spec.Names.Kind, err)
}

// objectID identifies an object independently of its version.
type objectID struct {
	schema.GroupKind
	namespace, name string
}

// selfCreated are objects that a provider's manager creates and never deletes. They are of no use
// without the provider, and it creates them again.
var selfCreated = []objectID{
	// This is the identity of the manager itself, which is created with the first AWSCluster. The
	// provider's webhook accepts no other name.
	{schema.GroupKind{Group: "infrastructure.cluster.x-k8s.io", Kind: "AWSClusterControllerIdentity"}, "", "default"},
}

// ignoredObjects returns the objects that do not count.
func ignoredObjects(objects []object.Key) map[objectID]bool {
	ignored := make(map[objectID]bool, len(objects)+len(selfCreated))
	for _, o := range objects {
		ignored[objectID{o.GroupKind(), o.Namespace, o.Name}] = true
	}

	for _, o := range selfCreated {
		ignored[o] = true
	}

	return ignored
}
