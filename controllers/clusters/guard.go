package clusters

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/capstan-project/capstan/chartgen/supply/web"
	"github.com/capstan-project/capstan/controllers/object"
)

// Limits are the limits of what a remote API server can cost. Fields that are zero have their defaults.
type Limits struct {
	// Timeout limits each request. Default: 30s.
	Timeout time.Duration
	// ConnectTimeout limits the request that finds out whether the API server answers. Default: 10s.
	ConnectTimeout time.Duration
}

func (l Limits) withDefaults() Limits {
	setDefault(&l.Timeout, 30*time.Second)
	setDefault(&l.ConnectTimeout, 10*time.Second)

	return l
}

func setDefault[T comparable](value *T, defaultValue T) {
	var zero T
	if *value == zero {
		*value = defaultValue
	}
}

const (
	// maxWatch is how long a watch may take.
	maxWatch = 10 * time.Minute
	// maxConnections is how many requests are sent to an API server at the same time.
	maxConnections = 8
	// maxHeader limits the headers of a response in bytes.
	maxHeader = 64 << 10
)

// errTimeout is the cause of a request's end if the API server did not answer in time.
var errTimeout = errors.New("no response in time")

// guard sends the requests to a remote API server, which may be anyone's. It limits their duration, and reads each
// response completely, within the memory for all such responses, before anything decodes it. It follows no redirects,
// accepts only JSON, and lets no text of other servers than API servers through.
type guard struct {
	next    http.RoundTripper
	address string
	limits  Limits
	// namespace is that of the kubeconfig, to which the memory counts.
	namespace string
	memory    *responseMemory
	// running ends when the connection is closed, and with it every request.
	running context.Context
	// failed is called when the server has not answered.
	failed func()
}

// wrap makes the guard send its requests by a transport, whose own limits it sets.
func (g *guard) wrap(next http.RoundTripper) http.RoundTripper {
	for inner := next; inner != nil; {
		if transport, ok := inner.(*http.Transport); ok {
			transport.MaxConnsPerHost = maxConnections
			transport.MaxResponseHeaderBytes = maxHeader
		}

		wrapper, ok := inner.(utilnet.RoundTripperWrapper)
		if !ok {
			break
		}

		inner = wrapper.WrappedRoundTripper()
	}

	wrapped := *g
	wrapped.next = next

	return &wrapped
}

// WrappedRoundTripper returns the transport that sends the requests.
func (g *guard) WrappedRoundTripper() http.RoundTripper { return g.next }

// RoundTrip sends a request. If the server does not answer as it should, the error is an *UnreachableError.
func (g *guard) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	timer := time.AfterFunc(g.limits.Timeout, func() { cancel(errTimeout) })
	unlink := context.AfterFunc(g.running, func() { cancel(context.Canceled) })
	release := sync.OnceFunc(func() {
		timer.Stop()
		unlink()
		cancel(nil)
	})

	response, err := g.next.RoundTrip(acceptJSON(request.WithContext(ctx)))
	if err != nil {
		release()
		return nil, g.failure(ctx, request, err)
	}

	if location := response.Header.Get("Location"); location != "" && isRedirect(response.StatusCode) {
		_ = response.Body.Close()

		release()

		return nil, g.unreachable("it redirects requests, which is not followed")
	}

	expectJSON(response)

	if isWatch(request.URL) && response.StatusCode == http.StatusOK {
		timer.Reset(maxWatch)

		response.Body = &stream{ReadCloser: response.Body, release: release}

		return response, nil
	}

	defer release()
	defer response.Body.Close()

	return g.read(ctx, request, response)
}

// read returns a response with its whole body.
func (g *guard) read(ctx context.Context, request *http.Request, response *http.Response) (*http.Response, error) {
	body, end, err := g.memory.readBody(ctx, g.namespace, response.Body)
	if err != nil {
		return nil, g.failure(ctx, request, err)
	}

	if response.StatusCode >= http.StatusBadRequest {
		body = statusOf(response, body)
	} else if problem := notFromAPIServer(request.URL, body); problem != "" {
		end()
		return nil, g.unreachable(problem)
	}

	response.ContentLength = int64(len(body))
	response.Header.Del("Content-Length")
	response.Body = &readBody{Reader: bytes.NewReader(body), end: sync.OnceFunc(end)}

	return response, nil
}

// readBody is the body of a response that was read. Closing it gives its memory back.
type readBody struct {
	*bytes.Reader
	end func()
}

// Close ends the response.
func (b *readBody) Close() error {
	b.end()

	return nil
}

// failure returns the error of a request, with the cause of its end. A caller that gave up says nothing about the
// server.
func (g *guard) failure(ctx context.Context, request *http.Request, err error) error {
	if request.Context().Err() != nil || g.running.Err() != nil {
		return err
	}

	if refused := (*web.AddressError)(nil); errors.As(err, &refused) {
		return &KubeConfigError{"spec.kubeConfig: " + refused.Error()}
	}

	g.failed()

	if errors.Is(context.Cause(ctx), errTimeout) {
		return g.unreachable(fmt.Sprintf("no response within %s", g.limits.Timeout))
	}

	return g.unreachable(reasonOf(err))
}

func (g *guard) unreachable(reason string) *UnreachableError {
	return &UnreachableError{Address: g.address, Reason: reason, Until: time.Now().Add(minRetry)}
}

// statusOf returns the body of an error: that of the server only if it is an API server's, so that the answers of other
// servers are not shown.
func statusOf(response *http.Response, body []byte) []byte {
	var status metav1.Status
	if json.Unmarshal(body, &status) != nil || status.Kind != "Status" {
		status = metav1.Status{Message: fmt.Sprintf("the server answers with %d and no reason, as no API server does; "+
			"check the server of the kubeconfig", response.StatusCode)}
	}

	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	status.Status = metav1.StatusFailure
	status.Code = int32(response.StatusCode)
	status.Message = object.OneLine(object.Printable(status.Message), maxMessage)

	shown, err := json.Marshal(status)
	if err != nil {
		return nil
	}

	response.Header.Set("Content-Type", jsonFormat)

	return shown
}

// maxMessage limits the message of an error.
const maxMessage = 4 << 10

// notFromAPIServer returns why a response cannot be that of an API server; empty if it can. Decoders would quote it.
func notFromAPIServer(address *url.URL, body []byte) string {
	const problem = "its responses are not those of an API server"

	var document struct{ Kind, APIVersion string }
	if json.Unmarshal(body, &document) != nil {
		return problem
	}

	isObject := strings.HasPrefix(address.Path, "/api/") || strings.HasPrefix(address.Path, "/apis/")
	if isObject && (document.Kind == "" || document.APIVersion == "") {
		return problem
	}

	return ""
}

// stream is the body of a watch.
type stream struct {
	io.ReadCloser
	release       func()
	total, memory int64
}

// Read reads from the body.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	s.total += int64(n)
	s.memory += decodedSize(p[:max(n, 0)])

	if s.total > maxStream || s.memory > maxStreamMemory {
		return 0, fmt.Errorf("a watch takes more than %d MiB, or %d MiB of memory", maxStream>>20, maxStreamMemory>>20)
	}

	return n, err
}

// Close ends the watch.
func (s *stream) Close() error {
	defer s.release()
	return s.ReadCloser.Close()
}

func isWatch(address *url.URL) bool {
	watch, err := strconv.ParseBool(address.Query().Get("watch"))
	return err == nil && watch
}

func isRedirect(status int) bool {
	return status >= http.StatusMultipleChoices && status < http.StatusBadRequest && status != http.StatusNotModified
}

const jsonFormat = "application/json"

// acceptJSON returns the request with JSON as the only format that it accepts: the memory for other
// formats cannot be estimated.
func acceptJSON(request *http.Request) *http.Request {
	var accepted []string

	for _, format := range strings.Split(request.Header.Get("Accept"), ",") {
		if strings.HasPrefix(strings.TrimSpace(format), jsonFormat) {
			accepted = append(accepted, format)
		}
	}

	if len(accepted) == 0 {
		accepted = []string{jsonFormat}
	}

	changed := request.Clone(request.Context())
	changed.Header.Set("Accept", strings.Join(accepted, ","))

	return changed
}

// expectJSON lets a response be decoded as JSON, whatever the API server calls it.
func expectJSON(response *http.Response) {
	if !strings.HasPrefix(response.Header.Get("Content-Type"), jsonFormat) {
		response.Header.Set("Content-Type", jsonFormat)
	}
}
