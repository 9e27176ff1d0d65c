// Package retry repeats requests to an API server that failed for a passing reason, such as a change of
// etcd's leader, for a second or two. Longer troubles are left to the next reconcile.
package retry

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

const (
	// firstWait is the time before the first repetition. It doubles each time.
	firstWait = 100 * time.Millisecond
	// attempts is how many times something is tried.
	attempts = 5
	// patience is how long after the first attempt the last one may start: a server that takes long to
	// fail is not asked again.
	patience = 3 * time.Second
)

// Do calls a function until it does not ask to be called again, with pauses, at most 5 times within
// seconds. It returns the function's last error, and stops early when ctx ends.
func Do(ctx context.Context, try func() (again bool, err error)) error {
	started := time.Now()
	wait := firstWait

	for i := 1; ; i++ {
		again, err := try()
		if !again || i == attempts || time.Since(started)+wait > patience || !Pause(ctx, wait) {
			return err
		}

		wait *= 2
	}
}

// Pause waits, and reports whether ctx has not ended.
func Pause(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()

	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// transport repeats requests. See Wrap.
type transport struct{ next http.RoundTripper }

// Wrap returns a transport that repeats a request if the server reported an error of its own or the
// connection was lost, and if it makes no difference whether the request takes effect once or several
// times: reads, dry runs, reviews, deletions and all patches but JSON patches. A connection that cannot
// be established, a timeout, and an answer that says when to ask again are not for it: client-go waits
// as long as such an answer says.
func Wrap(next http.RoundTripper) http.RoundTripper { return &transport{next: next} }

// RoundTrip sends a request.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if !repeatable(request) {
		return t.next.RoundTrip(request)
	}

	var response *http.Response

	err := Do(request.Context(), func() (again bool, err error) {
		if response != nil {
			_ = response.Body.Close()
		}

		current, err := clone(request)
		if err != nil {
			return false, err
		}

		response, err = t.next.RoundTrip(current) //nolint:bodyclose // here if repeated, else by the caller

		return failed(response, err), err
	})

	return response, err
}

// WrappedRoundTripper lets client-go find the transports below.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// clone returns the request with a body that has not been read.
func clone(request *http.Request) (*http.Request, error) {
	if request.GetBody == nil {
		return request, nil
	}

	body, err := request.GetBody()
	if err != nil {
		return nil, err
	}

	cloned := request.Clone(request.Context())
	cloned.Body = body

	return cloned, nil
}

// failed reports whether the same request may succeed in a moment.
func failed(response *http.Response, err error) bool {
	if err != nil {
		return IsPassing(err)
	}

	return response.Header.Get("Retry-After") == "" && isPassingCode(response.StatusCode)
}

// IsPassing reports whether a request that failed with this error may succeed in a moment, as Wrap does for
// requests. The error may hide that the request took effect.
func IsPassing(err error) bool {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		_, waits := apierrors.SuggestsClientDelay(err)
		return !waits && isPassingCode(int(status.Status().Code))
	}

	lost := utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)

	return lost && !errors.Is(err, context.Canceled)
}

func isPassingCode(code int) bool {
	switch code {
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}

	return false
}
