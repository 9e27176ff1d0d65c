package cluster

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"helm.sh/helm/v3/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"
)

// absentClient answers every read with "not found", without a request. An install of Helm reads the
// objects one by one and refuses those that exist. SetTarget has read them already, in parallel,
// and has checked whom they belong to, so Helm is made to believe that there are none.
type absentClient struct{ resource.RESTClient }

// Get returns a request that fails with a NotFound error.
func (absentClient) Get() *rest.Request {
	return rest.NewRequestWithClient(
		&url.URL{Scheme: "http", Host: "absent.invalid"},
		"",
		rest.ClientContentConfig{},
		&http.Client{Transport: notFound{}},
	)
}

// notFound is a transport that sends nothing.
type notFound struct{}

// RoundTrip returns a NotFound error.
func (notFound) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{}, "")
}

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
	client := info.Client
	if absent, ok := client.(absentClient); ok {
		client = absent.RESTClient
	}

	return resource.NewHelper(client, info.Mapping).WithFieldManager(kube.ManagedFieldsManager)
}
