package clusters

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/capstan-project/capstan/chartgen/limit"
	"github.com/capstan-project/capstan/chartgen/transport"
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
		return nil, errors.New("server is not a URL")
	}

	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}

	proxy := http.ProxyFromEnvironment
	if config.Proxy != nil {
		proxy = config.Proxy
	}

	// Errors of HTTP clients quote the URL, and a path may be a credential.
	config.Host = transport.Origin(server)
	config.TLSClientConfig, config.Proxy = rest.TLSClientConfig{}, nil
	secrets := secretsOf(config, proxy)
	config.Transport = &guardedTransport{
		path:  strings.TrimSuffix(server.EscapedPath(), "/"),
		echo:  transport.NewEcho(secrets...),
		paths: transport.NewEcho(append(secrets, partsOf(server.Path)...)...),
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
	next http.RoundTripper
	// path is that of the server, escaped.
	path string
	// echo finds the credentials in what is used of a response, and paths also the path in an error, which quotes it.
	echo, paths transport.Echo

	room      *room
	namespace string
}

// RoundTrip sends a request. The body of the response is JSON, the only format that is counted while it is read.
func (t *guardedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	discovers := request.URL.Path == "/api" || request.URL.Path == "/apis"
	request = request.Clone(request.Context())
	request.Header.Set("Accept", onlyJSON(request.Header.Get("Accept")))

	if err := t.setPath(request); err != nil {
		return nil, err
	}

	response, err := t.next.RoundTrip(request)
	if err != nil {
		return nil, t.hidden(err)
	}

	counted := &countedBody{
		body:    response.Body,
		counted: limit.JSON{MaxBytes: maxResponse, MaxValues: maxValues, MaxDepth: maxDepth},
		enter:   func() error { return t.room.enter(request.Context(), t.namespace) },
		leave:   func() { t.room.leave(t.namespace) },
	}
	response.Body = counted

	response.Status, response.Trailer = http.StatusText(response.StatusCode), nil
	response.Header = t.header(response)

	switch {
	case response.StatusCode >= http.StatusBadRequest:
		if err := t.readError(response); err != nil {
			return nil, err
		}

		return response, nil
	case response.StatusCode >= http.StatusMultipleChoices:
		_ = counted.Close()
		return nil, &responseError{"is a redirect; name the address that it redirects to"}
	case !isJSON(response):
		_ = counted.Close()
		return nil, &responseError{"is not JSON"}
	case discovers && !listsResources(response):
		_ = counted.Close()
		return nil, &responseError{"lists no resources of its APIs, as Kubernetes does since 1.27"}
	}

	response.Body = t.echo.Body(counted)

	return response, nil
}

// setPath adds the path of the server.
func (t *guardedTransport) setPath(request *http.Request) error {
	if t.path == "" {
		return nil
	}

	escaped := t.path + request.URL.EscapedPath()

	path, err := url.PathUnescape(escaped)
	if err != nil {
		return errors.New("the path of the server cannot be used")
	}

	request.URL.Path, request.URL.RawPath = path, escaped

	return nil
}

// hidden returns the error of a request, which may quote what the server or a proxy has sent, such as the names of a
// certificate.
func (t *guardedTransport) hidden(err error) error {
	if t.paths.In([]byte(err.Error())) {
		return transport.ErrEcho
	}

	return err
}

// header returns what is used of the header. All else, such as warnings, would be logged.
func (t *guardedTransport) header(response *http.Response) http.Header {
	used := http.Header{}

	for _, name := range []string{"Content-Type", "Retry-After"} {
		if value := response.Header.Get(name); value != "" && !t.paths.In([]byte(value)) {
			used.Set(name, value)
		}
	}

	return used
}

// readError reads the body of an error. One that is no answer of an API server, such as the page of a proxy, or that
// contains credentials would be quoted: only its status is used.
func (t *guardedTransport) readError(response *http.Response) error {
	defer response.Body.Close()

	var text []byte

	if isJSON(response) {
		var err error
		if text, err = io.ReadAll(response.Body); err != nil {
			return t.hidden(err)
		}
	}

	if t.paths.In(text) {
		text = nil
	}

	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))

	return nil
}

// partsOf returns the parts of a path that may be credentials, which are long.
func partsOf(path string) []string {
	const minLength = 16

	return slices.DeleteFunc(strings.Split(path, "/"), func(part string) bool { return len(part) < minLength })
}

// secretsOf returns the credentials of a configuration.
func secretsOf(config *rest.Config, proxy func(*http.Request) (*url.URL, error)) []string {
	secrets := append(transport.BasicAuth(config.Username, config.Password), config.BearerToken)

	for _, scheme := range []string{"https", "http"} {
		through, err := proxy(&http.Request{URL: &url.URL{Scheme: scheme, Host: "server.invalid"}})
		if err == nil && through != nil {
			password, _ := through.User.Password()
			secrets = append(secrets, transport.BasicAuth(through.User.Username(), password)...)
		}
	}

	return secrets
}

// isJSON reports whether a response is decoded as JSON, or not at all.
func isJSON(response *http.Response) bool {
	mediaType, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))

	return err == nil && mediaType == mediaTypeJSON || response.StatusCode == http.StatusNoContent
}

// listsResources reports whether a response to discovery lists the APIs with their resources. The client would ask for
// those of each version of each API otherwise, at the same time.
func listsResources(response *http.Response) bool {
	_, parameters, err := mime.ParseMediaType(response.Header.Get("Content-Type"))

	return err == nil && parameters["g"] == apidiscoveryv2.GroupName && parameters["as"] == "APIGroupDiscoveryList"
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
