package apply

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-project/capstan/controllers/object"
	"github.com/capstan-project/capstan/controllers/paging"
)

// get returns an object as it is in the cluster, or nil if it does not exist.
func (c *Client) get(o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	found := reference(o)

	err := c.connection.client.Get(c.ctx, client.ObjectKeyFromObject(o), found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}

	if err != nil {
		return nil, err
	}

	return found, nil
}

// reference returns an object of the same kind and name without content, for requests about it.
func reference(o *unstructured.Unstructured) *unstructured.Unstructured {
	return referenceTo(object.KeyOf(o))
}

func referenceTo(key object.Key) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(key.GroupVersionKind)
	o.SetNamespace(key.Namespace)
	o.SetName(key.Name)

	return o
}

// scalersPage is how many objects Any reads at a time: as large as possible, they are 15 MiB.
const scalersPage = 10

// Any reports whether an object of a kind in a namespace matches. The error is a NoMatchError if the kind does not
// exist.
func (c *Client) Any(
	kind schema.GroupVersionKind, namespace string, matches func(*unstructured.Unstructured) bool,
) (bool, error) {
	list := func(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
		found := &unstructured.UnstructuredList{}
		found.SetGroupVersionKind(kind)

		page := &client.ListOptions{Namespace: namespace, Limit: options.Limit, Continue: options.Continue}

		return found, c.connection.client.List(ctx, found, page)
	}

	for page, err := range paging.Pages(c.ctx, metav1.ListOptions{Limit: scalersPage}, list) {
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
