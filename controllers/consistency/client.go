// Package consistency reads from a cache what this process has written: a read waits until the cache shows it.
//
// A controller that acts on a status older than the one it wrote last does not notice that the status has to change
// back.
package consistency

import (
	"context"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A cache usually shows a write after some milliseconds.
const pollInterval, maxWait = 5 * time.Millisecond, 10 * time.Second

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

// NewClient returns a client that reads from the cache of cached, and live from the API server.
func NewClient(cached client.Client, live client.Reader) *Client {
	return &Client{Client: cached, live: live}
}

// Read reads a resource, once the cache shows what this client has written.
func (c *Client) Read(ctx context.Context, key client.ObjectKey, o client.Object) error {
	resource := id{reflect.TypeOf(o), key}

	read := func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, key, o)
		if apierrors.IsNotFound(err) {
			c.written.Forget(resource)
		}

		return err == nil && c.written.Shows(resource, o.GetResourceVersion()), err
	}

	err := wait.PollUntilContextTimeout(ctx, pollInterval, maxWait, true, read)
	if wait.Interrupted(err) {
		c.forgetLost(ctx, resource, o)
		return fmt.Errorf("wait until the cache shows what was written to %s: %w", key, err)
	}

	return err
}

// forgetLost drops what was written to a resource if the API server does not have it either: etcd was restored from a
// backup.
func (c *Client) forgetLost(ctx context.Context, resource id, o client.Object) {
	live := o.DeepCopyObject().(client.Object)

	if err := c.live.Get(ctx, resource.key, live); err == nil {
		c.written.DropLost(resource, live.GetResourceVersion())
	}
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

// note notes the version of a resource that was patched.
func (c *Client) note(o client.Object, err error) error {
	if err == nil {
		c.written.Note(id{reflect.TypeOf(o), client.ObjectKeyFromObject(o)}, o.GetResourceVersion())
	}

	return err
}
