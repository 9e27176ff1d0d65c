package cluster

import (
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
