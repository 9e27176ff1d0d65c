package clusters

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// Limits are the limits of what a remote API server can cost. Fields that are zero have their defaults.
type Limits struct {
	// Timeout limits each request, and how long the response to a watch may take to begin. Default: 30s.
	Timeout time.Duration
	// ProbeTimeout limits a request that finds out whether the API server answers. Default: 10s.
	ProbeTimeout time.Duration
	// MinProbe and MaxProbe are the shortest and the longest time between two of these requests.
	// Default: 1s and 30s.
	MinProbe, MaxProbe time.Duration
	// Idle is how long an API server may answer no request before it is probed. Default: 20s.
	Idle time.Duration
	// MaxResponse limits the body of each response in bytes, and MaxList the sum of all pages of a list,
	// of all events of a watch, and of all responses that are read at the same time.
	// Default: 16 MiB and 96 MiB.
	MaxResponse, MaxList int64
	// MaxDecoded limits the estimated memory of the documents that are being read, in bytes. Default: 128 MiB.
	MaxDecoded int64
	// Pause is how long nothing is sent to an API server that has exceeded one of these. Default: 5m.
	Pause time.Duration
}

func (l Limits) withDefaults() Limits {
	setDefault(&l.Timeout, 30*time.Second)
	setDefault(&l.ProbeTimeout, 10*time.Second)
	setDefault(&l.MinProbe, time.Second)
	setDefault(&l.MaxProbe, 30*time.Second)
	setDefault(&l.Idle, 20*time.Second)
	setDefault(&l.MaxResponse, 16<<20)
	setDefault(&l.MaxList, 96<<20)
	setDefault(&l.MaxDecoded, 128<<20)
	setDefault(&l.Pause, 5*time.Minute)

	return l
}

func setDefault[T comparable](value *T, defaultValue T) {
	var zero T
	if *value == zero {
		*value = defaultValue
	}
}

// maxWatch is how long a watch may take that sets no timeout itself; watchGrace is how much longer than
// that timeout the API server may keep it open.
const (
	maxWatch   = 10 * time.Minute
	watchGrace = 30 * time.Second
)

// errTimeout is the cause of a request's end if the API server did not answer in time.
var errTimeout = errors.New("no response in time")

// guard sends the requests to a remote API server, which may be anyone's. It limits their duration and
// the size of the responses, follows no redirects, sends nothing while the server is known not to
// answer or has sent too much, and reports whether it answered.
type guard struct {
	next   http.RoundTripper
	limits Limits
	reach  *reachability
	// running ends when the connection is closed, and with it every request.
	running context.Context
	sizes   *sizes
	decoded *decoded
}

// wrap makes the guard send its requests by a transport.
func (g *guard) wrap(next http.RoundTripper) http.RoundTripper {
	wrapped := *g
	wrapped.next = next

	return &wrapped
}

// WrappedRoundTripper returns the transport that sends the requests.
func (g *guard) WrappedRoundTripper() http.RoundTripper { return g.next }

// RoundTrip sends a request.
func (g *guard) RoundTrip(request *http.Request) (*http.Response, error) {
	probing := isProbe(request.Context())
	if err := g.reach.refusal(); err != nil && !probing {
		return nil, err
	}

	ctx, cancel := context.WithCancelCause(request.Context())
	timer := time.AfterFunc(g.limits.Timeout, func() { cancel(errTimeout) })
	unlink := context.AfterFunc(g.running, func() { cancel(context.Canceled) })
	release := func() {
		timer.Stop()
		unlink()
		cancel(nil)
	}

	response, err := g.next.RoundTrip(acceptJSON(request.WithContext(ctx)))
	if err != nil {
		err = g.failure(ctx, err)

		// A caller that gave up says nothing about the server.
		if request.Context().Err() == nil && g.running.Err() == nil && !probing {
			g.reach.failed()
		}

		release()

		return nil, err
	}

	// Invalid credentials are of no more use than no answer.
	if response.StatusCode == http.StatusUnauthorized && !probing {
		g.reach.failed()
	} else {
		g.reach.answered()
	}

	if location := response.Header.Get("Location"); location != "" && isRedirect(response.StatusCode) {
		_ = response.Body.Close()

		release()

		return nil, errors.New(
			"the API server redirects requests, which is not followed; correct the server of the kubeconfig")
	}

	if duration, ok := watchDuration(request.URL); ok {
		timer.Reset(duration)
	}

	expectJSON(response)

	document := &document{all: g.decoded}
	count, discount := g.sizes.start(request.URL, g.limits)
	response.Body = &guardedBody{
		ReadCloser: response.Body,
		ctx:        ctx,
		guard:      g,
		count:      count,
		document:   document,
		release: sync.OnceFunc(func() {
			document.end()
			discount()
			release()
		}),
	}

	return response, nil
}

// failure returns the error of a request, with the cause of its end.
func (g *guard) failure(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errTimeout) {
		return fmt.Errorf("no response within %s", g.limits.Timeout)
	}

	return err
}

// guardedBody is the body of a response.
type guardedBody struct {
	io.ReadCloser
	ctx     context.Context //nolint:containedctx // the request's, which ends when the body is closed
	release func()
	guard   *guard
	// count counts bytes, and returns what is too large; empty if nothing is.
	count    func(n int) string
	document *document
}

// Read reads from the body.
func (b *guardedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, b.guard.failure(b.ctx, err)
	}

	if excess := b.count(n); excess != "" {
		b.guard.reach.exceeded(excess)
	}

	if limit := b.guard.limits.MaxDecoded; b.document.read(p[:max(n, 0)], limit) {
		b.guard.reach.exceeded(fmt.Sprintf("documents take more than %d MiB of memory", limit>>20))
	}

	// Another response may have been too large, too.
	if err := b.guard.reach.pausing(); err != nil {
		return 0, err
	}

	return n, err
}

// Close closes the body, which ends the request.
func (b *guardedBody) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

// watchDuration returns how long a request may take if it is a watch; false if it is not.
func watchDuration(address *url.URL) (time.Duration, bool) {
	query := address.Query()
	if watch, err := strconv.ParseBool(query.Get("watch")); err != nil || !watch {
		return 0, false
	}

	seconds, err := strconv.Atoi(query.Get("timeoutSeconds"))
	if err != nil || seconds <= 0 {
		return maxWatch, true
	}

	return time.Duration(seconds)*time.Second + watchGrace, true
}

func isRedirect(status int) bool {
	return status >= http.StatusMultipleChoices && status < http.StatusBadRequest && status != http.StatusNotModified
}
