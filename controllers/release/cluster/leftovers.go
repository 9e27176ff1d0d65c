package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"

	"github.com/capstan-project/capstan/controllers/object"
)

// DeleteLeftovers searches all kinds of the cluster for objects that match the selector and belong
// to the release, deletes them and returns them. It keeps what an uninstall keeps.
func (c *Client) DeleteLeftovers(ctx context.Context, selector labels.Selector) ([]object.Key, error) {
	kinds, err := c.deletableKinds()
	if err != nil {
		return nil, err
	}

	var (
		mu      sync.Mutex
		deleted []object.Key
		group   errgroup.Group
	)

	group.SetLimit(concurrency)

	for _, kind := range kinds {
		group.Go(func() error {
			found, err := c.deleteLeftoversOf(ctx, kind, selector)

			mu.Lock()
			defer mu.Unlock()

			deleted = append(deleted, found...)

			return err
		})
	}

	err = group.Wait()

	slices.SortFunc(deleted, func(a, b object.Key) int { return strings.Compare(a.String(), b.String()) })

	return deleted, err
}

// deletableKind is a kind whose objects can be listed and deleted.
type deletableKind struct {
	kind     schema.GroupVersionKind
	resource schema.GroupVersionResource
}

// neverLeft are kinds that are never deleted, and one that charts do not contain and the API server
// warns about.
var neverLeft = []string{"CustomResourceDefinition", "Namespace", "Endpoints"}

// deletableKinds returns the kinds whose objects can be listed and deleted, each in one version.
func (c *Client) deletableKinds() ([]deletableKind, error) {
	// An aggregated API whose server is down does not prevent the use of all others.
	lists, err := discovery.ServerPreferredResources(c.connection.discovery)
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("ask the API server for its APIs: %w", err)
	}

	var kinds []deletableKind

	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}

		for _, r := range list.APIResources {
			if !slices.Contains(neverLeft, r.Kind) {
				kinds = append(kinds, deletableKind{kind: gv.WithKind(r.Kind), resource: gv.WithResource(r.Name)})
			}
		}
	}

	return kinds, nil
}

func (c *Client) deleteLeftoversOf(
	ctx context.Context,
	kind deletableKind,
	selector labels.Selector,
) ([]object.Key, error) {
	objects := c.connection.metadata.Resource(kind.resource)

	list, err := objects.List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		return nil, nil
	}

	if err != nil {
		return nil, fmt.Errorf("list %s: %w", kind.resource.GroupResource(), err)
	}

	var deleted []object.Key

	for i := range list.Items {
		o := &list.Items[i]
		if !c.owns(o) || isKept(o) {
			continue
		}

		key := object.Key{GroupVersionKind: kind.kind, Namespace: o.Namespace, Name: o.Name}
		if err := deleteObject(ctx, objects, o); err != nil {
			return deleted, &RemoveError{Objects: []*ObjectError{newObjectError(key, err)}}
		}

		deleted = append(deleted, key)
	}

	return deleted, nil
}

// deleteObject deletes that object, not one that has replaced it. It is not an error if the object
// does not exist.
func deleteObject(ctx context.Context, objects metadata.Getter, o *metav1.PartialObjectMetadata) error {
	propagation := metav1.DeletePropagationBackground

	return ignoreNotFound(objects.Namespace(o.Namespace).Delete(ctx, o.Name, metav1.DeleteOptions{
		PropagationPolicy: &propagation,
		Preconditions:     &metav1.Preconditions{UID: &o.UID},
	}))
}
