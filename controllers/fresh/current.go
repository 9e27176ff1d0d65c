package fresh

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nameField selects resources by name.
const nameField = "metadata.name"

// Current returns a reader whose answers are at least as new as what the client has read and written. Its lists may be
// selected by name only.
func (c *Client) Current() client.Reader { return current{c} }

type current struct{ known *Client }

// Get is Client.Read.
func (r current) Get(ctx context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	return r.known.Read(ctx, key, o)
}

// List lists the resources that the cache has, and those that only the client knows, each read by Get.
func (r current) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	items, found := reflect.TypeOf(list).Elem().FieldByName("Items")
	if !found {
		return fmt.Errorf("list resources: %T has no field Items", list)
	}

	kind := reflect.PointerTo(items.Type.Elem())

	empty, isObject := reflect.New(items.Type.Elem()).Interface().(client.Object)
	if !isObject {
		return fmt.Errorf("list resources: the items of %T are no objects", list)
	}

	if err := r.known.list(ctx, empty); err != nil {
		return err
	}

	if err := r.cached().List(ctx, list, options...); err != nil {
		return err
	}

	keys := map[client.ObjectKey]bool{}

	if err := meta.EachListItem(list, func(item runtime.Object) error {
		keys[client.ObjectKeyFromObject(item.(client.Object))] = true
		return nil
	}); err != nil {
		return err
	}

	for _, key := range r.known.keys(kind, nameOf(options)) {
		keys[key] = true
	}

	objects := make([]runtime.Object, 0, len(keys))

	for key := range keys {
		o := reflect.New(kind.Elem()).Interface().(client.Object)

		err := r.Get(ctx, key, o)
		if err == nil {
			objects = append(objects, o)
		}

		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}

	return meta.SetList(list, objects)
}

// cached returns what the client wraps.
func (r current) cached() client.Client { return r.known.Client }

// nameOf returns the name that options select; empty for all.
func nameOf(options []client.ListOption) string {
	selector := (&client.ListOptions{}).ApplyOptions(options).FieldSelector
	if selector == nil {
		return ""
	}

	name, _ := selector.RequiresExactMatch(nameField)

	return name
}

// keys returns the keys of the resources of a kind that are known, and have the name unless it is empty.
func (c *Client) keys(kind reflect.Type, name string) []client.ObjectKey {
	c.mu.Lock()
	defer c.mu.Unlock()

	var keys []client.ObjectKey

	for resource := range c.versions {
		if resource.kind == kind && (name == "" || resource.key.Name == name) {
			keys = append(keys, resource.key)
		}
	}

	return keys
}
