package oci

import (
	"cmp"
	"net/http"
	"time"

	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/retry"

	"github.com/capstan-project/capstan/chartgen/supply/web"
)

// Options of a client. The zero value is for public registries.
type Options struct {
	// Credentials finds the credentials for a registry; nil means none.
	Credentials Credentials
	// CA holds PEM certificates of authorities to trust in addition to the system's.
	CA []byte
	// Certificate and Key are the client certificate in PEM.
	Certificate, Key []byte
	// Proxy is the URL of the proxy to use instead of the environment's.
	Proxy string
	// Guard restricts connections and redirects; nil for no restriction.
	Guard *web.Guard
	// StallTimeout is how long a connection may transfer nothing before it is closed; 0 means one
	// minute.
	StallTimeout time.Duration
}

// SetsTransport reports whether the options determine whom a connection trusts, or where it goes.
// Credentials of another owner must not be sent over it.
func (o Options) SetsTransport() bool {
	return o.Proxy != "" || len(o.CA)+len(o.Certificate)+len(o.Key) > 0
}

// Client reads from and writes to any number of registries. It is safe for concurrent use and needs
// no Close.
type Client struct {
	auth *auth.Client
}

// NewClient returns a client with the options.
func NewClient(o Options) (*Client, error) {
	roundTripper, err := newRoundTripper(o)
	if err != nil {
		return nil, err
	}

	return &Client{auth: &auth.Client{
		Client: &http.Client{
			Transport: retry.NewTransport(roundTripper), CheckRedirect: web.CheckRedirect(o.Guard, isBlob),
		},
		Header:     http.Header{"User-Agent": {"capstan"}},
		Cache:      auth.NewCache(),
		Credential: o.Credentials,
	}}, nil
}

// newRoundTripper returns a transport that closes stalled connections.
func newRoundTripper(o Options) (http.RoundTripper, error) {
	t, err := web.NewTransport(web.TransportOptions{
		CA: o.CA, Certificate: o.Certificate, Key: o.Key, Proxy: o.Proxy, Guard: o.Guard,
	})
	if err != nil {
		return nil, err
	}

	// a client is replaced whenever its Secret changes, and its connections must not pile up
	t.IdleConnTimeout = 30 * time.Second
	t.MaxIdleConnsPerHost = 16

	return &stallGuard{next: t, timeout: cmp.Or(o.StallTimeout, time.Minute)}, nil
}

// Repository returns oras's client of the reference's repository, for operations that this package
// does not have. The tag and digest of the reference are ignored.
func (c *Client) Repository(ref Reference) *remote.Repository {
	return &remote.Repository{
		Client:               c.auth,
		Reference:            registry.Reference{Registry: ref.Registry, Repository: ref.Repository},
		PlainHTTP:            ref.PlainHTTP,
		MaxMetadataBytes:     maxManifest,
		TagListMaxPages:      maxPages,
		ReferrerListMaxPages: maxPages,
	}
}
