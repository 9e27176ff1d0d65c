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
	"github.com/capstan-project/capstan/controllers/paging"
)

// Get returns an object of the cluster, or nil if it does not exist.
func (c *Client) Get(info *resource.Info) (*unstructured.Unstructured, error) {
	found, err := asUnstructured(c.helper(info).Get(info.Namespace, info.Name))
	if apierrors.IsNotFound(err) {
		return nil, nil
	}

	return found, err
}

// scalersPage is how many objects Any reads at a time: as large as possible, they are 15 MiB.
const scalersPage = 10

// Any reports whether an object of a kind in a namespace matches. The error is a NoMatchError if the kind does not
// exist.
func (c *Client) Any(
	kind schema.GroupVersionKind, namespace string, matches func(*unstructured.Unstructured) bool,
) (bool, error) {
	mapping, err := c.connection.Mapping(kind)
	if err != nil {
		return false, err
	}

	client, err := c.connection.restClient(kind.GroupVersion())
	if err != nil {
		return false, err
	}

	// The helper takes no context.
	list := func(_ context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
		found, err := resource.NewHelper(client, mapping).List(namespace, kind.GroupVersion().String(), &options)
		if err != nil {
			return nil, err
		}

		items, is := found.(*unstructured.UnstructuredList)
		if !is {
			return nil, fmt.Errorf("list %s: the API server's answer is not a list", kind.Kind)
		}

		return items, nil
	}

	for page, err := range paging.Pages(context.Background(), metav1.ListOptions{Limit: scalersPage}, list) {
		if err != nil {
			return false, err
		}

		for i := range page.Items {
			if matches(&page.Items[i]) {
				return true, nil
			}
		}
	}

	return false, nil
}

// helper returns the client for requests about an object.
func (c *Client) helper(info *resource.Info) *resource.Helper {
	return resource.NewHelper(info.Client, info.Mapping).WithFieldManager(v1alpha2.FieldOwner)
}
