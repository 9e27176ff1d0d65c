package web

import (
	"net/http"
	"net/url"
	"time"

	"github.com/capstan-project/capstan/chartgen/supply/transport"
)

// Credentials are what a web server may ask for. All are optional.
type Credentials struct {
	// Username and Password for basic authentication.
	Username, Password string
	// Token is sent as a bearer token; it comes before Username and Password.
	Token string
	// CA certificates in PEM that are trusted beside the system's.
	CA []byte
	// Certificate and Key in PEM, to show to servers that ask for one.
	Certificate, Key []byte
	// Proxy is the URL of the proxy to go through, instead of the environment's.
	Proxy string
}

// How long the steps of one request may take. The whole of Get is bounded beside.
const (
	dialTimeout   = 10 * time.Second
	headerTimeout = 20 * time.Second
	idleTimeout   = 5 * time.Second
)

// transport sends credentials to the origins for which they are meant, and to nobody else: neither
// where a server redirects to, nor to the same host without TLS.
type originTransport struct {
	withCredentials, plain http.RoundTripper
	credentials  Credentials
	origins      map[string]bool
}

func newTransport(c Credentials, origins []string) (*originTransport, error) {
	foreign, err := newBase(transport.Options{CA: c.CA, Proxy: c.Proxy})
	if err != nil {
		return nil, err
	}

	own, err := newBase(transport.Options{CA: c.CA, Proxy: c.Proxy, Certificate: c.Certificate, Key: c.Key})
	if err != nil {
		return nil, err
	}

	t := &originTransport{withCredentials: own, plain: foreign, credentials: c, origins: map[string]bool{}}
	for _, origin := range origins {
		t.origins[origin] = true
	}

	return t, nil
}

// newBase is a transport whose connections do not outlive their use for long.
func newBase(o transport.Options) (http.RoundTripper, error) {
	base, err := transport.New(o)
	if err != nil {
		return nil, &CredentialsError{err}
	}

	base.TLSHandshakeTimeout = dialTimeout
	base.ResponseHeaderTimeout = headerTimeout
	base.IdleConnTimeout = idleTimeout
	base.MaxResponseHeaderBytes = 64 << 10

	return base, nil
}

// RoundTrip adds the credentials to a copy of the request, so that http.Client has none to carry
// along to a redirect.
func (t *originTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !t.origins[Origin(req.URL)] {
		return t.plain.RoundTrip(req)
	}

	req = req.Clone(req.Context())

	switch c := t.credentials; {
	case c.Token != "":
		req.Header.Set("Authorization", "Bearer "+c.Token)
	case c.Username != "" || c.Password != "":
		req.SetBasicAuth(c.Username, c.Password)
	}

	return t.withCredentials.RoundTrip(req)
}

// Origin is what credentials are bound to: scheme and host.
func Origin(u *url.URL) string { return u.Scheme + "://" + u.Host }
