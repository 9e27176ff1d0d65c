package oci

import (
	"net/http"

	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/capstan-project/capstan/chartgen/transport"
)

// Client reads from and writes to any number of registries. It is safe for concurrent use and needs
// no Close.
type Client struct {
	auth *auth.Client
}

// NewClient returns a client with the options.
func NewClient(o transport.Options) (*Client, error) {
	client, err := transport.NewHTTP(o)
	if err != nil {
		return nil, err
	}

	return &Client{auth: &auth.Client{
		Client:     client,
		Header:     http.Header{"User-Agent": {"capstan"}},
		Cache:      auth.NewCache(),
		Credential: o.Credentials,
	}}, nil
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
		// Most registries do not allow to delete, and another client may still read the former list.
		SkipReferrersGC: true,
	}
}
