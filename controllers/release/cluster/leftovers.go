package cluster

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/paging"
	"github.com/capstan-project/capstan/controllers/release/policies"
	"github.com/capstan-project/capstan/controllers/release/waves"
)

// leftoversPage is how many objects of a kind one request lists: as large as possible, they are 30 MiB.
const leftoversPage = 20

// Search describes where to search for the objects of a release.
type Search struct {
	// Selector matches the labels that all objects of the release have.
	Selector labels.Selector
	// Kinds that the release may have; empty if they are unknown, which means all of the cluster.
	Kinds []schema.GroupKind
	// Reader lists the metadata of objects. What it is not permitted to list, the client lists itself.
	Reader metadata.Interface
	// Except is a namespace whose objects are not searched for, because it is being deleted with all
	// that is in it; empty for none.
	Except string
}

// Leftover is an object of a release that was found in the cluster.
type Leftover struct {
	Object object.Key
	// Deleting reports whether the object is being deleted.
	Deleting bool

	resource schema.GroupVersionResource
	uid      types.UID
	order    waves.Order
}

// FindLeftovers searches the cluster for objects that belong to the release, and returns those that an
// uninstall would delete, sorted. A kind that cannot be listed does not keep it from searching others:
// the error is then a *SearchError, and the other objects are returned with it.
func (c *Client) FindLeftovers(ctx context.Context, search Search) ([]Leftover, error) {
	// What was discovered earlier may lack kinds that are served by now.
	c.connection.Refresh()

	kinds, problems, err := c.searchedKinds(search.Kinds)
	if err != nil {
		return nil, err
	}

	var (
		mu    sync.Mutex
		found []Leftover
		group errgroup.Group
	)

	group.SetLimit(concurrency)

	for _, kind := range kinds {
		group.Go(func() error {
			objects, err := c.leftoversOf(ctx, kind, search)

			mu.Lock()
			defer mu.Unlock()

			found = append(found, objects...)

			if err != nil {
				problems = append(problems, newKindError(kind.kind.GroupKind(), err))
			}

			return nil
		})
	}

	_ = group.Wait() // always nil, the errors are in problems

	slices.SortFunc(found, func(a, b Leftover) int { return cmp.Compare(a.Object.String(), b.Object.String()) })

	return found, newSearchError(c.release, problems)
}

// maxSearch limits a search for objects that probably do not exist.
const maxSearch = 20 * time.Second

// PruneFound deletes the objects that FindLeftovers finds and a manifest does not have. What must not be searched, or
// cannot be at the moment, does not count. An object may be found by other groups and versions of its kind than that of
// the manifest.
func (c *Client) PruneFound(ctx context.Context, content string, search Search) error {
	list, err := c.parse(content)
	if err != nil {
		return err
	}

	searching, cancel := context.WithTimeout(ctx, maxSearch)
	defer cancel()

	found, err := c.FindLeftovers(searching, search)
	if err != nil {
		c.log.Info("Looked for objects that no record has in a part of the cluster only", "problem", err.Error())
	}

	return c.deleteLeftovers(ctx, slices.DeleteFunc(found, func(leftover Leftover) bool {
		return slices.ContainsFunc(list, func(o *unstructured.Unstructured) bool {
			key := leftover.Object
			return key.Kind == o.GetKind() && key.Namespace == o.GetNamespace() && key.Name == o.GetName()
		})
	}))
}

// DeleteLeftovers deletes objects that FindLeftovers has found, and not those that have replaced them.
// They are deleted in the order of their annotations, those of the release's own kinds first; the error is a
// *RemainingError until those are gone that others wait for.
func (c *Client) DeleteLeftovers(ctx context.Context, options RemoveOptions, leftovers []Leftover) error {
	if options.AtOnce {
		return c.deleteLeftovers(ctx, leftovers)
	}

	isOwn := func(o Leftover) bool { return slices.Contains(options.Own, o.resource.GroupResource()) }
	ordered := waves.Split(leftovers, func(o Leftover) waves.Place { return o.order.Deleted(isOwn(o)) })

	for i, wave := range ordered {
		if err := c.deleteLeftovers(ctx, wave); err != nil {
			return err
		}

		if i == len(ordered)-1 && !isOwn(wave[0]) {
			break
		}

		if err := c.checkGone(ctx, wave); err != nil {
			return err
		}
	}

	return nil
}

func (c *Client) deleteLeftovers(ctx context.Context, leftovers []Leftover) error {
	return eachLeftover(leftovers, func(o Leftover) error {
		propagation := metav1.DeletePropagationBackground
		options := metav1.DeleteOptions{
			PropagationPolicy: &propagation, Preconditions: &metav1.Preconditions{UID: &o.uid},
		}

		return client.IgnoreNotFound(c.metadataOf(o).Delete(ctx, o.Object.Name, options))
	})
}

// checkGone returns a *RemainingError if objects that were deleted still exist.
func (c *Client) checkGone(ctx context.Context, leftovers []Leftover) error {
	var (
		mu        sync.Mutex
		remaining []Remaining
	)

	err := eachLeftover(leftovers, func(o Leftover) error {
		live, err := c.metadataOf(o).Get(ctx, o.Object.Name, metav1.GetOptions{})
		if err != nil || live.UID != o.uid {
			return client.IgnoreNotFound(err)
		}

		mu.Lock()
		defer mu.Unlock()

		remaining = append(remaining, Remaining{Object: o.Object, Finalizers: live.Finalizers})

		return nil
	})
	if err != nil {
		return err
	}

	return newRemainingError(remaining)
}

func (c *Client) metadataOf(o Leftover) metadata.ResourceInterface {
	return c.connection.metadata.Resource(o.resource).Namespace(o.Object.Namespace)
}

// eachLeftover calls the function for all leftovers in parallel, and returns a *RemoveError with those
// that failed.
func eachLeftover(leftovers []Leftover, do func(Leftover) error) error {
	failed := make([]*ObjectError, len(leftovers))

	var group errgroup.Group

	group.SetLimit(concurrency)

	for i, o := range leftovers {
		group.Go(func() error {
			if err := do(o); err != nil {
				failed[i] = newObjectError(o.Object, err)
			}

			return nil
		})
	}

	_ = group.Wait() // always nil, the errors are in failed

	failed = slices.DeleteFunc(failed, func(e *ObjectError) bool { return e == nil })
	if len(failed) > 0 {
		return &RemoveError{Objects: failed}
	}

	return nil
}

// searchedKind is a kind whose objects can be listed and deleted.
type searchedKind struct {
	kind     schema.GroupVersionKind
	resource schema.GroupVersionResource
}

// isNeverLeft reports whether a kind is not searched: it is never deleted, or it is one that charts do not contain and
// the API server warns about.
func isNeverLeft(kind string) bool { return isProtected(kind) || kind == "Endpoints" }

// searchedKinds returns the kinds to search, each in one version. Of the wanted kinds, those that no
// API serves have no objects; those whose API does not respond are problems. If no kind is wanted in
// particular, APIs that do not respond are left out: the release would hardly have used them.
func (c *Client) searchedKinds(wanted []schema.GroupKind) (kinds []searchedKind, problems []*KindError, err error) {
	lists, err := discovery.ServerPreferredResources(c.connection.discovery)

	unreachable, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partial {
		return nil, nil, err
	}

	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}

		for _, r := range list.APIResources {
			kind := gv.WithKind(r.Kind)
			if isNeverLeft(r.Kind) || len(wanted) > 0 && !slices.Contains(wanted, kind.GroupKind()) {
				continue
			}

			kinds = append(kinds, searchedKind{kind: kind, resource: gv.WithResource(r.Name)})
		}
	}

	for _, kind := range wanted {
		served := slices.ContainsFunc(kinds, func(k searchedKind) bool { return k.kind.GroupKind() == kind })

		for gv, err := range unreachable {
			if gv.Group == kind.Group && !served {
				problems = append(problems, newUnservedError(kind, err))
				break
			}
		}
	}

	return kinds, problems, nil
}

// leftoversOf returns the objects of one kind that belong to the release.
func (c *Client) leftoversOf(ctx context.Context, kind searchedKind, search Search) ([]Leftover, error) {
	found, err := c.listLeftovers(ctx, search.Reader.Resource(kind.resource), kind, search)
	if apierrors.IsForbidden(err) {
		found, err = c.listLeftovers(ctx, c.connection.metadata.Resource(kind.resource), kind, search)
	}

	if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		return found, nil
	}

	return found, err
}

func (c *Client) listLeftovers(
	ctx context.Context, objects metadata.ResourceInterface, kind searchedKind, search Search,
) ([]Leftover, error) {
	var found []Leftover

	options := metav1.ListOptions{LabelSelector: search.Selector.String(), Limit: leftoversPage}

	for page, err := range paging.Pages(ctx, options, objects.List) {
		if err != nil {
			return found, err
		}

		for i := range page.Items {
			o := &page.Items[i]
			if !c.isLeftover(o) || search.Except != "" && o.Namespace == search.Except {
				continue
			}

			found = append(found, Leftover{
				Object:   object.Key{GroupVersionKind: kind.kind, Namespace: o.Namespace, Name: o.Name},
				Deleting: o.DeletionTimestamp != nil,
				resource: kind.resource,
				uid:      o.UID,
				order:    waves.OrderOf(o),
			})
		}
	}

	return found, nil
}

// isLeftover reports whether an object belongs to the release, and is deleted with it. What a controller has created
// goes with its owner: a ReplicaSet has the marks of its Deployment.
func (c *Client) isLeftover(o metav1.Object) bool {
	controlled := metav1.GetControllerOf(o) != nil && !object.PredecessorOwns(o)
	return c.owns(o) && !controlled && !isKept(o) && !policies.IsOrphaned(o)
}
