package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"

	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/paging"
)

// Search describes where to search for the objects of a release whose inventory is lost.
type Search struct {
	// Selector matches the labels that all objects of the release have.
	Selector labels.Selector
	// Resources are the kinds that releases usually have.
	Resources []schema.GroupResource
	// Reader lists the metadata of objects. What it is not permitted to list, the client lists itself.
	Reader metadata.Interface
}

const (
	// maxSearch limits a search for objects that may not exist.
	maxSearch = 20 * time.Second
	// searchPage is how many objects of a kind one request lists: as large as possible, they are 30 MiB.
	searchPage = 20
)

// Search returns the objects in the cluster that bear the marks of the release, except those of kinds that another
// search could not list, either.
func (c *Client) Search(ctx context.Context, search Search) ([]object.Key, error) {
	ctx, cancel := context.WithTimeout(ctx, maxSearch)
	defer cancel()

	// What was discovered earlier may lack kinds that are served by now. APIs that do not respond are left out.
	c.connection.Refresh()

	lists, err := discovery.ServerPreferredResources(c.connection.discovery)
	_, partial := discovery.GroupDiscoveryFailedErrorGroups(err)

	switch {
	case partial:
		c.log.Info("Searching for the objects of a release in a part of the APIs only", "problem", err.Error())
	case err != nil:
		return nil, fmt.Errorf("search for the objects of release %s: discover the cluster's APIs: %w", c.release, err)
	}

	var (
		mu    sync.Mutex
		found []object.Key
		group errgroup.Group
	)

	group.SetLimit(concurrency)

	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}

		for _, r := range list.APIResources {
			if !slices.Contains(search.Resources, gv.WithResource(r.Name).GroupResource()) {
				continue
			}

			group.Go(func() error {
				keys, err := c.searchKind(ctx, gv.WithKind(r.Kind), gv.WithResource(r.Name), search)
				if err != nil && !isLeftOut(err) {
					return fmt.Errorf("search for the objects of release %s: %w", c.release, err)
				}

				if err != nil {
					c.log.Info("Searched for the objects of a release without a kind", "kind", r.Kind, "problem", err.Error())
				}

				mu.Lock()
				defer mu.Unlock()

				found = append(found, keys...)

				return nil
			})
		}
	}

	if err := group.Wait(); err != nil {
		return nil, err
	}

	return found, nil
}

// isLeftOut reports whether a list would fail again. What takes too long is not waited for.
func isLeftOut(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) ||
		errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "conversion webhook")
}

// searchKind returns the objects of one kind that belong to the release.
func (c *Client) searchKind(
	ctx context.Context, kind schema.GroupVersionKind, resource schema.GroupVersionResource, search Search,
) ([]object.Key, error) {
	found, err := c.list(ctx, search.Reader.Resource(resource), kind, search.Selector)
	if apierrors.IsForbidden(err) {
		found, err = c.list(ctx, c.connection.metadata.Resource(resource), kind, search.Selector)
	}

	return found, err
}

func (c *Client) list(
	ctx context.Context, objects metadata.ResourceInterface, kind schema.GroupVersionKind, selector labels.Selector,
) ([]object.Key, error) {
	var found []object.Key

	options := metav1.ListOptions{LabelSelector: selector.String(), Limit: searchPage}

	for page, err := range paging.Pages(ctx, options, objects.List) {
		if err != nil {
			return found, err
		}

		for i := range page.Items {
			// What a controller has created goes with its owner: a ReplicaSet has the marks of its Deployment.
			if o := &page.Items[i]; c.owns(o) && (metav1.GetControllerOf(o) == nil || object.PredecessorOwns(o)) {
				found = append(found, object.Key{GroupVersionKind: kind, Namespace: o.Namespace, Name: o.Name})
			}
		}
	}

	return found, nil
}
