package release

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"helm.sh/helm/v3/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
)

// Names lists the releases in a namespace, sorted.
func (e *Engine) Names(ctx context.Context, namespace string) ([]string, error) {
	list, err := e.metadata.Namespace(namespace).
		List(ctx, metav1.ListOptions{LabelSelector: labels.Set{"owner": "helm"}.String()})
	if err != nil {
		return nil, fmt.Errorf("list the releases in namespace %s: %w", namespace, err)
	}

	names := map[string]bool{}
	for _, secret := range list.Items {
		names[secret.Labels["name"]] = true
	}

	return slices.Sorted(maps.Keys(names)), nil
}

// Sweep deletes a release of which there is no record, or none that can be read: whoever deletes
// the release's namespace deletes its records with it, and the objects outside of that namespace
// are still there. It looks through all kinds of the cluster for objects with the labels and the
// release's mark, and reports those that it deleted; records go last. What Uninstall leaves, Sweep
// leaves too.
func (e *Engine) Sweep(ctx context.Context, namespace, name string, selector labels.Selector) ([]Object, error) {
	kinds, err := e.deletableKinds()
	if err != nil {
		return nil, err
	}

	var (
		mu      sync.Mutex
		deleted []Object
		group   errgroup.Group
	)
	group.SetLimit(parallel)

	for resource, kind := range kinds {
		group.Go(func() error {
			swept, err := e.sweepKind(ctx, resource, kind, namespace, name, selector)

			mu.Lock()
			defer mu.Unlock()

			deleted = append(deleted, swept...)

			return err
		})
	}

	err = group.Wait()

	slices.SortFunc(deleted, func(a, b Object) int { return strings.Compare(a.String(), b.String()) })

	if err != nil {
		return deleted, err
	}

	records := metav1.ListOptions{LabelSelector: ownerSelector(name)}
	if err := e.metadata.Namespace(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, records); err != nil {
		return deleted, fmt.Errorf("delete the records of release %s/%s: %w", namespace, name, err)
	}

	return deleted, nil
}

// deletableKinds are the kinds whose objects can be listed and deleted, each in one version.
func (e *Engine) deletableKinds() (map[schema.GroupVersionResource]schema.GroupVersionKind, error) {
	lists, err := discovery.ServerPreferredResources(e.cluster.discovery)
	// an API whose server is down must not stop all others
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("ask the API server for its APIs: %w", err)
	}

	kinds := map[schema.GroupVersionResource]schema.GroupVersionKind{}

	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}

		for _, r := range list.APIResources {
			if !slices.Contains(notSwept, r.Kind) {
				kinds[gv.WithResource(r.Name)] = gv.WithKind(r.Kind)
			}
		}
	}

	return kinds, nil
}

// notSwept are kinds that are never deleted, and one that charts do not bring and the API server
// warns of.
var notSwept = []string{"CustomResourceDefinition", "Namespace", "Endpoints"}

func (e *Engine) sweepKind(ctx context.Context, resource schema.GroupVersionResource, kind schema.GroupVersionKind,
	namespace, name string, selector labels.Selector,
) ([]Object, error) {
	objects := e.objects.Resource(resource)

	list, err := objects.List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		return nil, nil
	}

	if err != nil {
		return nil, fmt.Errorf("list %s: %w", resource.GroupResource(), err)
	}

	var deleted []Object

	for i := range list.Items {
		o := &list.Items[i]
		if o.Annotations[releaseNameAnnotation] != name || o.Annotations[releaseNamespaceAnnotation] != namespace ||
			strings.EqualFold(o.Annotations[kube.ResourcePolicyAnno], kube.KeepPolicy) {
			continue
		}

		found := Object{kind, o.Namespace, o.Name}
		if err := deleteObject(ctx, objects, o); err != nil {
			return deleted, &RemoveError{[]*ObjectError{{found, reasonOf(kind.Kind, err), err}}}
		}

		deleted = append(deleted, found)
	}

	return deleted, nil
}

// deleteObject deletes that very object; one that is gone is fine.
func deleteObject(ctx context.Context, objects metadata.Getter, o *metav1.PartialObjectMetadata) error {
	propagation := metav1.DeletePropagationBackground

	err := objects.Namespace(o.Namespace).Delete(ctx, o.Name, metav1.DeleteOptions{
		PropagationPolicy: &propagation, Preconditions: &metav1.Preconditions{UID: &o.UID},
	})
	if isGone(err) {
		return nil
	}

	return err
}
