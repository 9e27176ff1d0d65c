package fresh

import (
	"context"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Resources returns a reader whose lists show what this client has written, at the cost of a request for each resource
// that the cache has in an older version. Those of a former process are not waited for.
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
		key := client.ObjectKeyFromObject(cached)

		if r.client.note(id{reflect.TypeOf(cached), key}, cached.GetResourceVersion()) {
			return nil
		}

		// Decoding must not change what the cache shares.
		kind := reflect.TypeOf(cached).Elem()
		live := reflect.New(kind)

		err := r.client.live.Get(ctx, key, live.Interface().(client.Object))
		if apierrors.IsNotFound(err) {
			return nil // the cache has yet to see that it is gone
		}

		if err == nil {
			reflect.ValueOf(cached).Elem().Set(live.Elem())
		}

		return err
	})
}
