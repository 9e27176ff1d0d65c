package callers

import (
	"cmp"
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// reader reads what a caller may read, and nothing else. Of a list in all namespaces, it returns the objects in those
// in which the caller may list them.
type reader struct {
	from   client.Reader
	caller *caller
}

// Get reads an object.
func (r *reader) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	at, err := r.resourceOf(o)
	if err != nil {
		return err
	}

	allowed, err := r.caller.may(ctx, "get", at.GroupResource, key.Namespace)
	if err != nil {
		return err
	}

	if !allowed {
		return r.caller.forbidden("get", at.GroupResource, key.Namespace)
	}

	return r.from.Get(ctx, key, o, options...)
}

// List lists objects.
func (r *reader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	at, err := r.resourceOf(list)
	if err != nil {
		return err
	}

	chosen := (&client.ListOptions{}).ApplyOptions(options)

	allowed, err := r.caller.may(ctx, "list", at.GroupResource, chosen.Namespace)
	if err != nil {
		return err
	}

	if !allowed && (chosen.Namespace != "" || !at.namespaced) {
		return r.caller.forbidden("list", at.GroupResource, chosen.Namespace)
	}

	if err := r.from.List(ctx, list, options...); err != nil || allowed {
		return err
	}

	return r.filter(ctx, list, at)
}

// resourceOf returns the resource of an object, or of the objects of a list.
func (r *reader) resourceOf(o runtime.Object) (resource, error) {
	kind, err := apiutil.GVKForObject(o, r.caller.scheme)
	if err != nil {
		return resource{}, err
	}

	if _, isList := o.(client.ObjectList); isList {
		kind.Kind = kind.Kind[:max(0, len(kind.Kind)-len("List"))]
	}

	return r.caller.resourceOf(kind)
}

// filter removes the objects in namespaces in which the caller may not list them.
func (r *reader) filter(ctx context.Context, list client.ObjectList, of resource) error {
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}

	found := make([]place, len(items))
	places := map[place]bool{}

	for i, item := range items {
		accessor, err := meta.Accessor(item)
		if err != nil {
			return err
		}

		found[i] = place{of.GroupResource, accessor.GetNamespace()}
		places[found[i]] = false
	}

	err = r.caller.mayEach(ctx, "list", places)

	visible := make([]runtime.Object, 0, len(items))

	for i, item := range items {
		if places[found[i]] && err == nil {
			visible = append(visible, item)
		}
	}

	if setErr := meta.SetList(list, visible); setErr != nil {
		return setErr
	}

	return err
}

// found is an object that was read, or the error that it does not exist.
type found struct {
	object  client.Object
	missing error
}

// sharedReader answers what it was asked a moment ago with the same objects. It does not know callers.
type sharedReader struct{ *Access }

// Get reads an object.
func (s *sharedReader) Get(
	ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption,
) error {
	id := fmt.Sprintf("%T %s %s %+v", o, o.GetObjectKind().GroupVersionKind(), key, options)
	empty := o.DeepCopyObject().(client.Object)

	read, err := s.objects.get(ctx, id, func(ctx context.Context) (found, error) {
		err := s.options.Facts.Client.Get(ctx, key, empty, options...)
		if apierrors.IsNotFound(err) {
			return found{missing: err}, nil
		}

		return found{object: empty}, err
	})
	if err != nil || read.missing != nil {
		return cmp.Or(err, read.missing)
	}

	assign(o, read.object.DeepCopyObject())

	return nil
}

// List lists objects.
func (s *sharedReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	chosen := (&client.ListOptions{}).ApplyOptions(options)
	id := fmt.Sprintf("%T %s %s %s",
		list, list.GetObjectKind().GroupVersionKind(), chosen.Namespace, chosen.AsListOptions())
	empty := list.DeepCopyObject().(client.ObjectList)

	found, err := s.lists.get(ctx, id, func(ctx context.Context) (client.ObjectList, error) {
		return empty, s.options.Facts.Client.List(ctx, empty, options...)
	})
	if err != nil {
		return err
	}

	assign(list, found.DeepCopyObject())

	return nil
}

// assign sets what a pointer points to. Both have the same type.
func assign(target, value runtime.Object) {
	reflect.ValueOf(target).Elem().Set(reflect.ValueOf(value).Elem())
}
