// Package usage reports whether a provider is in use: which objects exist of the kinds that its CRDs
// define, and that did not come with the provider itself. Whoever removes a provider asks it first,
// because nobody looks after these objects afterwards and most of them have finalizers that only
// the provider takes off.
package usage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/controllers/object"
)

const (
	// concurrency bounds the requests in flight.
	concurrency = 8
	// pageSize is how many objects of a kind are looked at in one request; all others are only
	// counted.
	pageSize = 100
	// examples is how many objects of a kind are named.
	examples = 2
)

// Finder looks for objects.
type Finder struct {
	// Definitions reads CRDs; their schemas may be left out.
	Definitions client.Reader
	// Objects lists objects' metadata.
	Objects metadata.Interface
}

// Query says what to look for.
type Query struct {
	// Provider is the label of the provider whose kinds are meant; empty means those of all
	// providers.
	Provider string
	// Namespace to look in; empty means everywhere, kinds without namespaces included.
	Namespace string
	// Own are objects that came with the provider. They do not count.
	Own []object.Key
}

// Find looks for objects, a kind at a time, by their metadata only and in the version in which they
// are stored: so none has to be converted, as a rule, and a conversion webhook that is down does no
// harm. A kind that the API server no longer has is not in use; one that cannot be looked into is
// in the result with the reason. The error says that CRDs could not be read.
func (f *Finder) Find(ctx context.Context, q Query) (*Usage, error) {
	definitions := &apiextensionsv1.CustomResourceDefinitionList{}

	var of client.ListOption = client.HasLabels{v1alpha2.ClusterctlProviderLabel}
	if q.Provider != "" {
		of = client.MatchingLabels{v1alpha2.ClusterctlProviderLabel: q.Provider}
	}

	if err := f.Definitions.List(ctx, definitions, of); err != nil {
		return nil, fmt.Errorf("list the CustomResourceDefinitions of %s: %w", cmp.Or(q.Provider, "all providers"), err)
	}

	own := ownObjects(q.Own)
	kinds := make([]Kind, len(definitions.Items))

	var group errgroup.Group
	group.SetLimit(concurrency)

	for i := range definitions.Items {
		definition := &definitions.Items[i]
		if q.Namespace != "" && definition.Spec.Scope != apiextensionsv1.NamespaceScoped {
			continue
		}

		group.Go(func() error {
			kinds[i] = f.kind(ctx, definition, q.Namespace, own)
			return ctx.Err()
		})
	}

	if err := group.Wait(); err != nil {
		return nil, err
	}

	kinds = slices.DeleteFunc(kinds, func(k Kind) bool { return k.Count == 0 && k.Problem == "" })
	slices.SortFunc(
		kinds,
		func(a, b Kind) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name)) },
	)

	return &Usage{Kinds: kinds}, nil
}

// kind looks into one kind.
func (f *Finder) kind(
	ctx context.Context,
	definition *apiextensionsv1.CustomResourceDefinition,
	namespace string,
	own map[objectID]bool,
) Kind {
	k := Kind{Name: definition.Name}

	version := versionOf(definition)
	if version == "" {
		k.Problem = "none of its versions is served; serve one, or delete the CustomResourceDefinition"
		return k
	}

	resource := schema.GroupVersionResource{
		Group:    definition.Spec.Group,
		Version:  version,
		Resource: definition.Spec.Names.Plural,
	}
	for options := (metav1.ListOptions{Limit: pageSize}); ; {
		page, err := f.Objects.Resource(resource).Namespace(namespace).List(ctx, options)
		if apierrors.IsNotFound(err) {
			return k // the kind is gone
		}

		if err != nil {
			k.Problem = problem(err)
			return k
		}

		for i := range page.Items {
			if o := &page.Items[i]; !own[objectID{schema.GroupKind{Group: resource.Group, Kind: definition.Spec.Names.Kind}, o.Namespace, o.Name}] {
				k.add(o)
			}
		}
		// What is beyond this page may be the provider's own only as long as nothing else was
		// found.
		if options.Continue = page.Continue; page.Continue == "" || k.Count > 0 {
			if page.RemainingItemCount != nil {
				k.Count += *page.RemainingItemCount
			}

			return k
		}
	}
}

// versionOf is the version to ask for: that of the storage, or else one that is served; empty if
// none is.
func versionOf(definition *apiextensionsv1.CustomResourceDefinition) string {
	served := ""
	for _, v := range definition.Spec.Versions {
		if v.Served && (v.Storage || served == "") {
			served = v.Name
		}
	}

	return served
}

// problem says why a kind could not be looked into, and what to do.
func problem(err error) string {
	message := err.Error()
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		message = status.Status().Message
	}

	if strings.Contains(message, "conversion webhook") {
		return message + "; repair the webhook's server, or set the CustomResourceDefinition's spec.conversion.strategy to None"
	}

	return message
}

// objectID identifies an object whatever the version.
type objectID struct {
	schema.GroupKind
	namespace, name string
}

// selfMade are objects that a provider's manager makes by itself and never deletes: they are of no
// use without the provider, and it makes them again. aws's stands for the manager's own identity
// and is made with the first AWSCluster; its webhook takes no other name.
var selfMade = []objectID{
	{schema.GroupKind{Group: "infrastructure.cluster.x-k8s.io", Kind: "AWSClusterControllerIdentity"}, "", "default"},
}

func ownObjects(came []object.Key) map[objectID]bool {
	own := make(map[objectID]bool, len(came)+len(selfMade))
	for _, o := range came {
		own[objectID{o.GroupKind(), o.Namespace, o.Name}] = true
	}

	for _, o := range selfMade {
		own[o] = true
	}

	return own
}
