// Package fresh reads resources from a cache, unless the cache lags behind what this process has written.
//
// A controller that acts on a status older than the one it wrote last does not notice that the status has to change
// back. Reading each time from the API server avoids that, at the cost of a request for each reconcile: an installation
// of five providers would take a quarter more requests, and one of a hundred small providers a sixth more.
package fresh

import (
	"context"
	"reflect"
	"sync"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Client reads from a cache and writes, like the client that it wraps. It also knows the newest version of each
// resource that it has read or patched. It is safe for concurrent use.
type Client struct {
	client.Client

	live    client.Reader
	listing singleflight.Group

	mu sync.Mutex
	// versions are the newest that are known, and unknown after a write whose result is not known.
	versions map[id]string
	listed   map[reflect.Type]bool
}

// id identifies a resource of a Go type.
type id struct {
	kind reflect.Type
	key  client.ObjectKey
}

// unknown is the version of a resource of which the cache may show an older one.
const unknown = ""

// NewClient returns a client that reads from the cache of cached, which has the resources of all namespaces, and from
// live what the cache does not have yet.
func NewClient(cached client.Client, live client.Reader) *Client {
	return &Client{Client: cached, live: live, versions: map[id]string{}, listed: map[reflect.Type]bool{}}
}

// Read reads a resource. It asks the API server for those that the cache has in an older version than this client has
// seen, or after a patch whose result is not known. What a former process has written counts as seen: before the first
// read of a kind, one request lists its resources.
func (c *Client) Read(ctx context.Context, key client.ObjectKey, o client.Object) error {
	resource := id{reflect.TypeOf(o), key}
	listed := c.list(ctx, o) == nil

	cached := c.Get(ctx, key, o)
	if cached == nil && listed && c.note(resource, o.GetResourceVersion()) {
		return nil
	}

	// Decoding keeps what the answer does not have.
	reflect.ValueOf(o).Elem().SetZero()

	before := c.version(resource)
	err := c.live.Get(ctx, key, o)

	switch {
	case apierrors.IsNotFound(err) && cached == nil:
		c.set(resource, unknown) // the cache has yet to see that it is gone
	case apierrors.IsNotFound(err):
		c.forget(resource)
	case err == nil:
		c.learn(resource, before, o.GetResourceVersion())
	}

	return err
}

// Patch patches a resource, and notes its new version.
func (c *Client) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	return c.noteResult(o, c.Client.Patch(ctx, o, patch, options...))
}

// Status returns a client for the status of resources that notes their new versions when it patches them.
func (c *Client) Status() client.SubResourceWriter { return &statusWriter{c.Client.Status(), c} }

type statusWriter struct {
	client.SubResourceWriter

	client *Client
}

func (w *statusWriter) Patch(
	ctx context.Context, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption,
) error {
	return w.client.noteResult(o, w.SubResourceWriter.Patch(ctx, o, patch, options...))
}

// noteResult notes the version of a resource that was patched. After an error it is not known: another program may
// have changed the resource, or the answer was lost.
func (c *Client) noteResult(o client.Object, err error) error {
	resource := id{reflect.TypeOf(o), client.ObjectKeyFromObject(o)}

	if err != nil {
		c.set(resource, unknown)
		return err
	}

	c.set(resource, o.GetResourceVersion())

	return nil
}

// list notes the versions that the API server has of all resources of an object's kind, once. A resource that is
// created later cannot have been written by a former process.
func (c *Client) list(ctx context.Context, o client.Object) error {
	kind := reflect.TypeOf(o)

	c.mu.Lock()
	listed := c.listed[kind]
	c.mu.Unlock()

	if listed {
		return nil
	}

	_, err, _ := c.listing.Do(kind.String(), func() (any, error) {
		found, err := c.listLive(ctx, o)
		if err != nil {
			return nil, err
		}

		c.mu.Lock()
		defer c.mu.Unlock()

		for _, item := range found {
			c.raise(id{kind, client.ObjectKeyFromObject(&item)}, item.ResourceVersion)
		}

		c.listed[kind] = true

		return nil, nil
	})

	return err
}

// listLive returns the metadata of all resources of an object's kind.
func (c *Client) listLive(ctx context.Context, o client.Object) ([]metav1.PartialObjectMetadata, error) {
	gvk, err := apiutil.GVKForObject(o, c.Scheme())
	if err != nil {
		return nil, err
	}

	gvk.Kind += "List"

	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk)
	err = c.live.List(ctx, list)

	return list.Items, err
}

// note notes the version of a resource in the cache, and reports whether it is at least the one that is known, if any.
func (c *Client) note(resource id, version string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.raise(resource, version)
}

// raise is note for a caller that has locked mu.
func (c *Client) raise(resource id, version string) bool {
	if known, ok := c.versions[resource]; ok && !isAtLeast(version, known) {
		return false
	}

	c.versions[resource] = version

	return true
}

// learn notes the version that the API server has answered, where before is the one that was known when it was asked.
// Meanwhile, the resource may have been written.
func (c *Client) learn(resource id, before, version string) {
	c.mu.Lock()
	defer c.mu.Unlock()

	switch known, ok := c.versions[resource]; {
	case !ok, known == before, isAtLeast(version, known):
		c.versions[resource] = version
	}
}

// version returns the version of a resource that is known; unknown if there is none.
func (c *Client) version(resource id) string {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.versions[resource]
}

func (c *Client) set(resource id, version string) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.versions[resource] = version
}

func (c *Client) forget(resource id) {
	c.mu.Lock()
	defer c.mu.Unlock()

	delete(c.versions, resource)
}

// isAtLeast reports whether a resource version is another one or a newer one. It is neither if they cannot be compared.
func isAtLeast(version, other string) bool {
	order, err := resourceversion.CompareResourceVersion(version, other)
	return err == nil && order >= 0
}
