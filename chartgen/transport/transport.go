// Package transport connects to the servers of sources without trusting them: web servers, and registries with their
// artifacts and signatures. One Secret has all that concerns a connection. The size of a small file and the time for it
// are limited, credentials are sent only to the servers they belong to, what may pass is tried again, and every error
// names the place and the fix.
package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"oras.land/oras-go/v2/registry/remote/retry"
)

// Options are how servers are reached. The zero value is for public servers.
type Options struct {
	// Credentials finds what is sent to a server; nil for nothing.
	Credentials Credentials
	// CA holds PEM certificates of authorities to trust in addition to the system's.
	CA []byte
	// Certificate and Key are the client certificate in PEM.
	Certificate, Key []byte
	// Proxy is the URL of an http, https or socks5 proxy, including its credentials if it needs
	// any. It replaces the proxy of the environment.
	Proxy string
	// Guard restricts connections and redirects; nil for no restriction.
	Guard *Guard
}

// SetsTransport reports whether the options determine whom a connection trusts, or where it goes.
// Credentials of another owner must not be sent over it.
func (o Options) SetsTransport() bool {
	return o.Proxy != "" || len(o.CA)+len(o.Certificate)+len(o.Key) > 0
}

const (
	dialTimeout = 10 * time.Second
	// idleTimeout is short: a client is replaced whenever its Secret changes, and its connections must not pile up.
	idleTimeout = 30 * time.Second
	// maxIdle is how many connections to a server stay open for the next request.
	maxIdle = 16
	// maxHeader limits the header of a response in bytes.
	maxHeader = 64 << 10
)

// stallTimeout is how long a connection may transfer nothing. There is no limit for the whole of it: a large layer may
// take as long as it needs.
var stallTimeout = time.Minute

// NewHTTP returns a client with the options, which does not send the credentials. Errors name the key of the Secret
// that is invalid and never contain its value.
func NewHTTP(o Options) (*http.Client, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = o.Guard.dial
	t.TLSHandshakeTimeout = dialTimeout
	t.IdleConnTimeout = idleTimeout
	t.MaxIdleConnsPerHost = maxIdle
	t.MaxResponseHeaderBytes = maxHeader
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}

	if len(o.CA) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}

		if !pool.AppendCertsFromPEM(o.CA) {
			return nil, invalidSecret("ca.crt holds no certificate in PEM form, as -----BEGIN CERTIFICATE-----")
		}

		t.TLSClientConfig.RootCAs = pool
	}

	if o.Proxy != "" {
		proxy, err := url.Parse(o.Proxy)
		if err != nil || proxy.Host == "" || !slices.Contains([]string{"http", "https", "socks5"}, proxy.Scheme) {
			return nil, invalidSecret("proxy is not the URL of a proxy such as http://proxy.example.com:3128")
		}

		t.Proxy = http.ProxyURL(proxy)
	}

	var base http.RoundTripper = t

	if len(o.Certificate) > 0 || len(o.Key) > 0 {
		pair, err := tls.X509KeyPair(o.Certificate, o.Key)
		if err != nil {
			return nil, invalidSecret("tls.crt and tls.key are not a certificate and its key in PEM form")
		}

		asked := t.Clone()
		asked.TLSClientConfig.Certificates = []tls.Certificate{pair}
		base = &certified{asked: asked, redirected: t}
	}

	quiet := &quiet{next: base}

	if proxy, err := url.Parse(o.Proxy); err == nil {
		password, _ := proxy.User.Password()
		quiet.remember(BasicAuth(proxy.User.Username(), password))
	}

	return &http.Client{
		Transport:     &retry.Transport{Base: quiet, Policy: func() retry.Policy { return retries }},
		CheckRedirect: o.Guard.checkRedirect,
	}, nil
}

// certified presents a client certificate to the servers that are asked, not to those that they redirect to.
type certified struct{ asked, redirected http.RoundTripper }

// RoundTrip sends a request.
func (c *certified) RoundTrip(req *http.Request) (*http.Response, error) {
	first := req
	for first.Response != nil {
		first = first.Response.Request
	}

	if Origin(first.URL) != Origin(req.URL) {
		return c.redirected.RoundTrip(req)
	}

	return c.asked.RoundTrip(req)
}

// Origin returns the scheme and host of a URL, to which credentials are bound.
func Origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// dial connects to an address unless that is refused.
func (g *Guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: dialTimeout}
	if g != nil && !isOwnProxy(address) {
		dialer.ControlContext = g.control(ctx, address)
	}

	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}

	return &connection{conn}, nil
}

// connection is one that fails if nothing is transferred for stallTimeout, in either direction.
type connection struct{ net.Conn }

// Read reads what the server has sent.
func (c *connection) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(stallTimeout)); err != nil {
		return 0, err
	}

	return c.Conn.Read(p)
}

// Write sends to the server. It also gives a Read more time, since that waits for the answer during an upload.
func (c *connection) Write(p []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(stallTimeout)); err != nil {
		return 0, err
	}

	return c.Conn.Write(p)
}
