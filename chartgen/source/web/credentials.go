package web

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/url"
	"time"
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
}

// How long the steps of one request may take. The whole of Get is bounded beside.
const (
	dialTimeout   = 10 * time.Second
	headerTimeout = 20 * time.Second
	idleTimeout   = 5 * time.Second
)

// transport sends credentials to the origins for which they are meant, and to nobody else: neither where a server
// redirects to, nor to the same host without TLS.
type transport struct {
	own, foreign http.RoundTripper
	credentials  Credentials
	origins      map[string]bool
}

func newTransport(c Credentials, origins []string) (*transport, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(c.CA) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(c.CA) {
			return nil, &CredentialsError{errors.New("ca.crt holds no certificate in PEM form")}
		}
		config.RootCAs = pool
	}
	t := &transport{foreign: newBase(config), credentials: c, origins: map[string]bool{}}
	for _, origin := range origins {
		t.origins[origin] = true
	}
	t.own = t.foreign
	if len(c.Certificate) > 0 || len(c.Key) > 0 {
		pair, err := tls.X509KeyPair(c.Certificate, c.Key)
		if err != nil {
			return nil, &CredentialsError{errors.New("tls.crt and tls.key are not a certificate and its key in PEM form")}
		}
		config = config.Clone()
		config.Certificates = []tls.Certificate{pair}
		t.own = newBase(config)
	}
	return t, nil
}

// newBase is Go's own transport, with the environment's proxy, and connections that do not outlive their use for long.
func newBase(config *tls.Config) http.RoundTripper {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.TLSClientConfig = config
	base.TLSHandshakeTimeout = dialTimeout
	base.ResponseHeaderTimeout = headerTimeout
	base.IdleConnTimeout = idleTimeout
	base.MaxResponseHeaderBytes = 64 << 10
	return base
}

// RoundTrip adds the credentials to a copy of the request, so that http.Client has none to carry along to a redirect.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !t.origins[Origin(req.URL)] {
		return t.foreign.RoundTrip(req)
	}
	req = req.Clone(req.Context())
	switch c := t.credentials; {
	case c.Token != "":
		req.Header.Set("Authorization", "Bearer "+c.Token)
	case c.Username != "" || c.Password != "":
		req.SetBasicAuth(c.Username, c.Password)
	}
	return t.own.RoundTrip(req)
}

// Origin is what credentials are bound to: scheme and host.
func Origin(u *url.URL) string { return u.Scheme + "://" + u.Host }
