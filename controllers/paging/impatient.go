package paging

import (
	"cmp"
	"context"
	"net/http"
)

// withoutWaiting is the key of a context whose requests are not repeated.
type withoutWaiting struct{}

// WithoutWaiting returns a context whose requests an impatient client does not repeat when the API server asks it to
// wait: the server's answer is the result, and not that the time was up. The caller tries again itself.
func WithoutWaiting(ctx context.Context) context.Context {
	return context.WithValue(ctx, withoutWaiting{}, true)
}

// Impatient returns an HTTP client that respects WithoutWaiting and otherwise behaves like the given one.
func Impatient(c *http.Client) *http.Client {
	impatient := *c
	impatient.Transport = impatience{cmp.Or(c.Transport, http.DefaultTransport)}

	return &impatient
}

type impatience struct{ http.RoundTripper }

// RoundTrip sends a request. The clients of Kubernetes repeat one only if its answer says how long to wait.
func (i impatience) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := i.RoundTripper.RoundTrip(request)
	if err == nil && request.Context().Value(withoutWaiting{}) != nil {
		response.Header.Del("Retry-After")
	}

	return response, err
}
