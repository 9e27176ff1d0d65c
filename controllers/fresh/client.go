// Package fresh reads from a cache, unless that lags behind what this process has written.
//
// A controller that acts on a status older than the one it wrote last does not notice that the status has to change
// back.
package fresh

import (
	"context"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Client reads from a cache and writes, like the client that it wraps. It is safe for concurrent use.
type Client struct {
	client.Client

	live    client.Reader
	written Writes[id]
}

// id identifies a resource of a Go type.
type id struct {
	kind reflect.Type
	key  client.ObjectKey
}

func idOf(o client.Object) id { return id{reflect.TypeOf(o), client.ObjectKeyFromObject(o)} }

// NewClient returns a client that reads from the cache of cached, and from live what this client has written and the
// cache does not have yet.
func NewClient(cached client.Client, live client.Reader) *Client {
	return &Client{Client: cached, live: live}
}

// Read reads a resource, which no other goroutine writes meanwhile.
func (c *Client) Read(ctx context.Context, key client.ObjectKey, o client.Object) error {
	resource := id{reflect.TypeOf(o), key}

	err := c.Get(ctx, key, o)
	if apierrors.IsNotFound(err) {
		c.written.Forget(resource)
	}

	if err != nil {
		return err
	}

	if c.written.Shows(resource, o.GetResourceVersion()) {
		return nil
	}

	// Decoding keeps what the answer does not have.
	reflect.ValueOf(o).Elem().SetZero()

	if err = c.live.Get(ctx, key, o); err != nil {
		return err
	}

	c.written.Note(resource, o.GetResourceVersion())

	return nil
}

// Patch patches a resource, and notes its new version.
func (c *Client) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	return c.note(o, c.Client.Patch(ctx, o, patch, options...))
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
	return w.client.note(o, w.SubResourceWriter.Patch(ctx, o, patch, options...))
}

// note notes the version of a resource that was patched. After an error it is not known: another program may have
// changed the resource, or the answer was lost.
func (c *Client) note(o client.Object, err error) error {
	if err != nil {
		c.written.Note(idOf(o), unknown)
		return err
	}

	c.written.Note(idOf(o), o.GetResourceVersion())

	return nil
}

// Resources returns a reader whose lists show what this client has written, at the cost of a request for each resource
// that the cache has in an older version.
func (c *Client) Resources() client.Reader { return &resources{Reader: c.Client, client: c} }

type resources struct {
	client.Reader

	client *Client
}

// List lists resources. They must not be changed if the options say so, as with the cache.
func (r *resources) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := r.Reader.List(ctx, list, options...); err != nil {
		return err
	}

	return meta.EachListItem(list, func(item runtime.Object) error {
		cached := item.(client.Object)
		if r.client.written.Shows(idOf(cached), cached.GetResourceVersion()) {
			return nil
		}

		// Decoding must not change what the cache shares.
		live := reflect.New(reflect.TypeOf(cached).Elem())

		err := r.client.live.Get(ctx, client.ObjectKeyFromObject(cached), live.Interface().(client.Object))
		if apierrors.IsNotFound(err) {
			return nil // the cache has yet to see that it is gone
		}

		if err == nil {
			reflect.ValueOf(cached).Elem().Set(live.Elem())
		}

		return err
	})
}
