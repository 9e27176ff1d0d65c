package web

import (
	"net/http"
	"net/url"
	"time"
)

// Credentials authenticate requests to a web server. All fields are optional.
type Credentials struct {
	// Username and Password are sent as basic authentication.
	Username, Password string
	// Token is sent as a bearer token. It takes precedence over Username and Password.
	Token string
	// CA holds PEM certificates of authorities to trust in addition to the system's.
	CA []byte
	// Certificate and Key are the client certificate in PEM.
	Certificate, Key []byte
	// Proxy is the URL of the proxy to use instead of the environment's.
	Proxy string
}

// HasLogin reports whether requests are authenticated by a header, which needs TLS.
func (c Credentials) HasLogin() bool { return c.Token != "" || c.Username != "" || c.Password != "" }

// SetsTransport reports whether the credentials also determine whom a connection trusts, or where it
// goes. Credentials of another owner must not be sent over it.
func (c Credentials) SetsTransport() bool {
	return c.Proxy != "" || len(c.CA)+len(c.Certificate)+len(c.Key) > 0
}

// Limits of the single steps of a request. Get has a limit for the whole of it as well.
const (
	dialTimeout   = 10 * time.Second
	headerTimeout = 20 * time.Second
	idleTimeout   = 5 * time.Second
)

// originTransport adds the credentials to requests to their own origins only. A server that
// redirects elsewhere, or to the same host without TLS, does not pass them on.
type originTransport struct {
	// authenticated presents the client certificate; anonymous does not.
	authenticated, anonymous http.RoundTripper

	credentials Credentials
	origins     map[string]bool
}

func newOriginTransport(c Credentials, guard *Guard, origins []string) (*originTransport, error) {
	anonymous, err := newRoundTripper(TransportOptions{CA: c.CA, Proxy: c.Proxy, Guard: guard})
	if err != nil {
		return nil, err
	}

	authenticated, err := newRoundTripper(TransportOptions{
		CA:          c.CA,
		Proxy:       c.Proxy,
		Certificate: c.Certificate,
		Key:         c.Key,
		Guard:       guard,
	})
	if err != nil {
		return nil, err
	}

	t := &originTransport{
		authenticated: authenticated,
		anonymous:     anonymous,
		credentials:   c,
		origins:       map[string]bool{},
	}
	for _, origin := range origins {
		t.origins[origin] = true
	}

	return t, nil
}

// newRoundTripper returns a transport with short timeouts. Idle connections are closed soon, since
// a client lives for one reconcile only.
func newRoundTripper(o TransportOptions) (http.RoundTripper, error) {
	t, err := NewTransport(o)
	if err != nil {
		return nil, &CredentialsError{err}
	}

	t.TLSHandshakeTimeout = dialTimeout
	t.ResponseHeaderTimeout = headerTimeout
	t.IdleConnTimeout = idleTimeout
	t.MaxResponseHeaderBytes = 64 << 10

	return t, nil
}

// RoundTrip sets the Authorization header on a copy of the request: http.Client would copy headers
// of the original to the next request when the server redirects.
func (t *originTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !t.origins[Origin(req.URL)] {
		return t.anonymous.RoundTrip(req)
	}

	req = req.Clone(req.Context())

	switch c := t.credentials; {
	case c.Token != "":
		req.Header.Set("Authorization", "Bearer "+c.Token)
	case c.Username != "" || c.Password != "":
		req.SetBasicAuth(c.Username, c.Password)
	}

	return t.authenticated.RoundTrip(req)
}

// Origin returns the scheme and host of a URL, to which credentials are bound.
func Origin(u *url.URL) string { return u.Scheme + "://" + u.Host }
