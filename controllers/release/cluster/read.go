package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/capstan-project/capstan/api/v1alpha2"
)

// Get returns an object of the cluster, or nil if it does not exist.
func (c *Client) Get(info *resource.Info) (*unstructured.Unstructured, error) {
	found, err := c.helper(info).Get(info.Namespace, info.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}

	if err != nil {
		return nil, err
	}

	return found.(*unstructured.Unstructured), nil
}

// List returns the objects of a kind in a namespace. The error is a NoMatchError if the kind does
// not exist.
func (c *Client) List(
	kind schema.GroupVersionKind,
	namespace string,
) (*unstructured.UnstructuredList, error) {
	mapping, err := c.connection.Mapping(kind)
	if err != nil {
		return nil, err
	}

	client, err := c.connection.restClient(kind.GroupVersion())
	if err != nil {
		return nil, err
	}

	return listWith(resource.NewHelper(client, mapping), kind, namespace, metav1.ListOptions{})
}

// ListLike returns a function that lists the objects of an object's kind in all namespaces.
func (c *Client) ListLike(info *resource.Info) func(
	context.Context, metav1.ListOptions,
) (*unstructured.UnstructuredList, error) {
	return func(_ context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
		return listWith(c.helper(info), info.Mapping.GroupVersionKind, metav1.NamespaceAll, options)
	}
}

func listWith(
	helper *resource.Helper, kind schema.GroupVersionKind, namespace string, options metav1.ListOptions,
) (*unstructured.UnstructuredList, error) {
	found, err := helper.List(namespace, kind.GroupVersion().String(), &options)
	if err != nil {
		return nil, err
	}

	list, ok := found.(*unstructured.UnstructuredList)
	if !ok {
		return nil, fmt.Errorf("the list of %s is a %T", kind.Kind, found)
	}

	return list, nil
}

// helper returns the client for requests about an object.
func (c *Client) helper(info *resource.Info) *resource.Helper {
	return resource.NewHelper(info.Client, info.Mapping).WithFieldManager(v1alpha2.FieldOwner)
}
