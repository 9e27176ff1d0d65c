package clusters

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/chartgen/limit"
)

// Limits of what an API server of spec.kubeConfig answers.
const (
	// maxHeader, maxResponse, maxValues and maxDepth limit a response: the header and the body in bytes, and what the
	// body is decoded to. The largest CRD of a provider has 0.7 MB, 11,000 values and 41 levels, without managed fields.
	maxHeader   = 64 << 10
	maxResponse = 16 << 20
	maxValues   = limit.MaxDocumentValues
	maxDepth    = limit.MaxDepth

	// Smaller responses than these need no place in the room.
	smallResponse = 256 << 10
	smallValues   = 4000

	// decodeByte and decodeValue are how long decoding takes at most.
	decodeByte  = 50 * time.Nanosecond
	decodeValue = 5 * time.Microsecond
)

const mediaTypeJSON = "application/json"

// responseError reports a response that is not used.
type responseError struct{ problem string }

func (e *responseError) Error() string {
	return "the API server of spec.kubeConfig sends a response that " + e.problem
}

// guarded returns the configuration for the clients of a remote cluster, whatever these are: all that it answers is
// limited before it is decoded.
func (p *Pool) guarded(r *remote) (*rest.Config, error) {
	config := rest.CopyConfig(r.config)

	// The scheme depends on the TLS options, which a configuration with a transport must not have.
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}

	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}

	proxy := http.ProxyFromEnvironment
	if config.Proxy != nil {
		proxy = config.Proxy
	}

	config.Host = server.String()
	config.TLSClientConfig, config.Proxy = rest.TLSClientConfig{}, nil
	config.Transport = &guardedTransport{
		next: utilnet.SetTransportDefaults(&http.Transport{
			DialContext:            p.Addresses.Dial,
			Proxy:                  proxy,
			TLSClientConfig:        tls,
			MaxResponseHeaderBytes: maxHeader,
		}),
		room:      &p.room,
		namespace: r.namespace,
	}

	return config, nil
}

// guardedTransport sends requests to an API server that is not trusted.
type guardedTransport struct {
	next      http.RoundTripper
	room      *room
	namespace string
}

// RoundTrip sends a request. The body of the response is JSON, the only format that is counted while it is read.
func (t *guardedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Accept", onlyJSON(request.Header.Get("Accept")))

	response, err := t.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}

	if !isJSON(response) {
		_ = response.Body.Close()

		if response.StatusCode < http.StatusMultipleChoices {
			return nil, &responseError{"is not JSON"}
		}

		response.Body = http.NoBody // such as the page of a proxy, which would be quoted

		return response, nil
	}

	response.Body = &countedBody{
		body:    response.Body,
		counted: limit.JSON{MaxBytes: maxResponse, MaxValues: maxValues, MaxDepth: maxDepth},
		enter:   func() error { return t.room.enter(request.Context(), t.namespace) },
		leave:   func() { t.room.leave(t.namespace) },
	}

	return response, nil
}

// isJSON reports whether a response is decoded as JSON, or not at all.
func isJSON(response *http.Response) bool {
	mediaType, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))

	return err == nil && mediaType == mediaTypeJSON || response.StatusCode == http.StatusNoContent
}

// onlyJSON returns what of an Accept header is JSON.
func onlyJSON(accept string) string {
	var all []string

	for accepted := range strings.SplitSeq(accept, ",") {
		if mediaType, _, _ := strings.Cut(accepted, ";"); strings.TrimSpace(mediaType) == mediaTypeJSON {
			all = append(all, accepted)
		}
	}

	if len(all) == 0 {
		return mediaTypeJSON
	}

	return strings.Join(all, ",")
}

// countedBody is the body of a response, whose limits are checked while it is read. Clients read all of it before they
// decode it.
type countedBody struct {
	body    io.ReadCloser
	counted limit.JSON
	// enter waits for a place, and leave gives it back.
	enter func() error
	leave func()

	entered bool
	closed  sync.Once
}

// Read reads from the body.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)

	if _, exceeded := b.counted.Write(p[:n]); exceeded != nil {
		return 0, &responseError{exceeded.Error()}
	}

	if !b.entered && (b.counted.Bytes > smallResponse || b.counted.Values > smallValues) {
		if err := b.enter(); err != nil {
			return 0, fmt.Errorf("wait until other large responses are read: %w", err)
		}

		b.entered = true
	}

	return n, err
}

// Close closes the body. It is decoded only afterwards, so its place stays taken for the time that this needs.
func (b *countedBody) Close() error {
	b.closed.Do(func() {
		if b.entered {
			decoding := time.Duration(b.counted.Bytes)*decodeByte + time.Duration(b.counted.Values)*decodeValue
			time.AfterFunc(decoding, b.leave)
		}
	})

	return b.body.Close()
}
