package apply

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/controllers/crds/versions"
	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/paging"
)

// Search describes where to search for the objects of a release whose inventory is lost.
type Search struct {
	// Selector matches the labels that all objects of the release have.
	Selector labels.Selector
	// Resources are the kinds that releases usually have, and Own those that the release defines.
	Resources []schema.GroupResource
	Own       OwnKinds
	// Reader lists the metadata of objects. What it is not permitted to list, the client lists itself.
	Reader metadata.Interface
	// Definitions reads CRDs, from a cache that may omit their schemas.
	Definitions client.Reader
	// Progress is what earlier attempts have found, to which this one adds.
	Progress *Progress
}

const (
	// maxListing limits the listing of one kind in one attempt. The API server itself takes no longer for a page.
	maxListing = time.Minute
	// retryListing is how soon the next attempt follows, which may come further.
	retryListing = 5 * time.Second
	// searchPage is how many objects of a kind one request lists: as large as possible, they are 30 MiB.
	searchPage = 20
)

// Search returns the objects in the cluster that bear the marks of the release. Kinds that do not exist, or must not be
// listed, have none. The error is an *UnlistedError if others could not be listed, and what was found is returned with
// it. Another attempt lists these, from where this one has stopped.
func (c *Client) Search(ctx context.Context, search Search) ([]object.Key, error) {
	served, err := c.discover()
	if err != nil {
		return nil, fmt.Errorf("search for the objects of release %s: discover the cluster's APIs: %w", c.release, err)
	}

	search.Progress.start()

	resources := search.resources()
	unlisted := make([]*Unlisted, len(resources))
	end := time.Now().Add(maxListing)

	var group errgroup.Group

	group.SetLimit(concurrency)

	for i, resource := range resources {
		kind := search.Progress.begin(resource, time.Now())
		if kind == nil {
			continue
		}

		group.Go(func() error {
			within, cancel := context.WithTimeout(ctx, maxListing)
			defer cancel()

			// What others have waited for that long is not likely to succeed now.
			if time.Now().After(end) {
				cancel()
			}

			unlisted[i] = c.searchKind(within, search, served, kind)

			return nil
		})
	}

	_ = group.Wait() // always nil, the problems are in unlisted

	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, ctx.Err()
	}

	return search.Progress.objects(), newUnlistedError(c.release, unlisted, search.Progress.full)
}

// resources returns the kinds to list, each once.
func (s Search) resources() []schema.GroupResource {
	others := slices.DeleteFunc(slices.Clone(s.Own), func(own schema.GroupResource) bool {
		return slices.Contains(s.Resources, own)
	})

	return slices.Concat(s.Resources, others)
}

// served are the kinds that the API server serves, and why API groups could not be discovered.
type served struct {
	kinds  map[schema.GroupResource]schema.GroupVersionKind
	failed map[string]error
}

// discover returns which kinds the API server serves.
func (c *Client) discover() (served, error) {
	found := served{kinds: map[schema.GroupResource]schema.GroupVersionKind{}, failed: map[string]error{}}

	// What was discovered earlier may lack kinds that are served by now.
	c.connection.Refresh()

	lists, err := discovery.ServerPreferredResources(c.connection.discovery)

	failed, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partial {
		return found, err
	}

	for gv, err := range failed {
		found.failed[gv.Group] = err
	}

	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}

		for _, r := range list.APIResources {
			found.kinds[gv.WithResource(r.Name).GroupResource()] = gv.WithKind(r.Kind)
		}
	}

	return found, nil
}

// searchKind lists what is left of a kind, and returns why that is not all of it; nil if it is.
func (c *Client) searchKind(ctx context.Context, search Search, served served, kind *listing) *Unlisted {
	left := &Unlisted{Resource: kind.resource, Own: slices.Contains(search.Own, kind.resource)}

	var err error

	if gvk, exists := served.kinds[kind.resource]; exists {
		err = c.listKind(ctx, search, kind, gvk)
	} else {
		err = search.checkUnserved(ctx, served, kind.resource)
	}

	if err == nil || isAbsent(err) {
		search.Progress.end(kind, time.Now())
		return nil
	}

	left.Lasting = errors.As(err, new(lastingError))
	left.Reason = reasonOf(err)

	return left
}

// lastingError is why a kind cannot be listed until that is repaired, and how.
type lastingError string

func (e lastingError) Error() string { return string(e) }

// isAbsent reports whether an error says that nothing can be listed, however often that is tried.
func isAbsent(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

// reasonOf returns why a kind could not be listed, without the URL of the request.
func reasonOf(err error) string {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return "the API server takes too long"
	}

	if request := (*url.Error)(nil); errors.As(err, &request) {
		err = request.Err
	}

	return object.Reason("", err)
}

// checkUnserved returns why a kind that the API server does not serve may have objects; nil if it has none.
func (s Search) checkUnserved(ctx context.Context, served served, resource schema.GroupResource) error {
	if err := served.failed[resource.Group]; err != nil {
		return fmt.Errorf("its API does not respond: %w; check the APIService and the server behind it", err)
	}

	definition, err := s.definition(ctx, resource)

	switch {
	case err != nil:
		return err
	case definition == nil || definition.DeletionTimestamp != nil:
		return nil
	case versions.Preferred(definition) == nil:
		return lastingError("none of its versions is served; serve one, or delete the CustomResourceDefinition")
	}

	return lastingError("the API server does not serve it yet; see the conditions of the CustomResourceDefinition")
}

// definition returns the CRD of a kind; nil if there is none.
func (s Search) definition(
	ctx context.Context, resource schema.GroupResource,
) (*apiextensionsv1.CustomResourceDefinition, error) {
	definition := &apiextensionsv1.CustomResourceDefinition{}

	err := s.Definitions.Get(ctx, types.NamespacedName{Name: resource.String()}, definition)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}

	return definition, err
}

// listKind lists what is left of a kind. If its objects cannot be converted, it lists them in the version that they are
// stored in, which usually needs no conversion.
func (c *Client) listKind(
	ctx context.Context, search Search, kind *listing, gvk schema.GroupVersionKind,
) error {
	err := c.listAs(ctx, search, kind, gvk)
	if !object.IsUnconverted(err) {
		return err
	}

	definition, failed := search.definition(ctx, kind.resource)
	if definition == nil || failed != nil {
		return errors.Join(err, failed)
	}

	unconverted := err

	if stored := versions.Preferred(definition); stored != nil && stored.Name != gvk.Version {
		err = c.listAs(ctx, search, kind, gvk.GroupKind().WithVersion(stored.Name))
	}

	// The client waits for a server that answers so, up to the end of the time for the kind.
	if !errors.Is(err, context.DeadlineExceeded) {
		unconverted = err
	}

	if problem := versions.ConversionProblem(definition, unconverted); problem != "" {
		return lastingError(problem)
	}

	return err
}

// listAs lists what is left of a kind in one of its versions.
func (c *Client) listAs(ctx context.Context, search Search, kind *listing, gvk schema.GroupVersionKind) error {
	resource := kind.resource.WithVersion(gvk.Version)

	err := c.list(ctx, search, kind, search.Reader.Resource(resource), gvk)
	if apierrors.IsForbidden(err) {
		err = c.list(ctx, search, kind, c.connection.Metadata.Resource(resource), gvk)
	}

	return err
}

func (c *Client) list(
	ctx context.Context, search Search, kind *listing, objects metadata.ResourceInterface, gvk schema.GroupVersionKind,
) error {
	options := metav1.ListOptions{LabelSelector: search.Selector.String(), Limit: searchPage, Continue: kind.next}

	for page, err := range paging.Pages(paging.WithoutWaiting(ctx), options, objects.List) {
		if err != nil {
			// A token that the API server does not know any more, for example.
			if object.IsRefusal(err) {
				search.Progress.restart(kind)
			}

			return err
		}

		for i := range page.Items {
			// What a controller has created goes with its owner: a ReplicaSet has the marks of its Deployment.
			if o := &page.Items[i]; c.owns(o) && (metav1.GetControllerOf(o) == nil || object.PredecessorOwns(o)) {
				key := object.Key{GroupVersionKind: gvk, Namespace: o.Namespace, Name: o.Name}
				search.Progress.keep(kind, key, c.release.Namespace)
			}
		}

		kind.next = page.GetContinue()
	}

	return nil
}

// Unlisted is a kind that could not be listed completely.
type Unlisted struct {
	Resource schema.GroupResource
	// Reason says why not.
	Reason string
	// Lasting is set if it cannot be listed until something is repaired, and Own if the release defines the kind.
	Lasting, Own bool
}

// UnlistedError means that not all objects of a release are known.
type UnlistedError struct {
	Release string // namespace/name
	Kinds   []Unlisted
	// More is set if there are more objects than an attempt finds.
	More bool
	// Until is when to try again.
	Until time.Time
}

// newUnlistedError returns nil if all kinds were listed.
func newUnlistedError(release types.NamespacedName, kinds []*Unlisted, more bool) error {
	e := &UnlistedError{Release: release.String(), More: more, Until: time.Now().Add(retryListing)}

	for _, kind := range kinds {
		if kind != nil {
			e.Kinds = append(e.Kinds, *kind)
		}
	}

	if len(e.Kinds) == 0 && !more {
		return nil
	}

	return e
}

// Lasting reports whether the search cannot be completed until something is repaired.
func (e *UnlistedError) Lasting() bool {
	return slices.ContainsFunc(e.Kinds, func(kind Unlisted) bool { return kind.Lasting })
}

// NeedsManager reports whether all that could not be listed are objects of own kinds that only the release's manager,
// which may not run, can convert.
func (e *UnlistedError) NeedsManager() bool {
	return !slices.ContainsFunc(e.Kinds, func(kind Unlisted) bool { return !kind.Lasting || !kind.Own })
}

// maxUnlisted is how many kinds a message names for the same reason.
const maxUnlisted = 10

func (e *UnlistedError) Error() string {
	var (
		reasons []string
		names   = map[string][]string{}
	)

	for _, kind := range e.Kinds {
		if names[kind.Reason] == nil {
			reasons = append(reasons, kind.Reason)
		}

		names[kind.Reason] = append(names[kind.Reason], kind.Resource.String())
	}

	var parts []string

	for _, reason := range reasons {
		parts = append(parts, fmt.Sprintf("%s cannot be listed yet: %s", object.List(names[reason], maxUnlisted), reason))
	}

	if e.More {
		parts = append(parts, "there are more than are handled at a time")
	}

	return fmt.Sprintf("not all objects of release %s are known: %s", e.Release, strings.Join(parts, "; "))
}
