package source

import (
	"context"
	"encoding/json"

	"github.com/capstan-project/capstan/chartgen/limit"
	"github.com/capstan-project/capstan/chartgen/supply/web"
)

// Server is a web server that may require credentials.
type Server struct {
	// Host of the address without the port, for example "github.com".
	Host string
	// TLS reports whether requests are sent over TLS.
	TLS bool
	// Tokens are the variables in which users of clusterctl and cluster-api-operator keep a token
	// for the server, for example "GITHUB_TOKEN".
	Tokens []string
}

// CredentialsFunc returns the credentials for a server; the zero value if there are none.
type CredentialsFunc func(ctx context.Context, server Server) (web.Credentials, error)

// WebOptions configure how web servers are accessed.
type WebOptions struct {
	// Credentials is called before the first request, so that no Secret is read for what does not
	// need one. Nil means none.
	Credentials CredentialsFunc
	// Guard restricts connections and redirects; nil for no restriction.
	Guard *web.Guard
}

// connection creates a client when the first request is made.
type connection struct {
	credentials CredentialsFunc
	guard       *web.Guard
	server      Server
	// origins are those that the credentials are sent to.
	origins []string

	client *web.Client
	// hasToken reports, once there is a client, whether its credentials include a token.
	hasToken bool
}

// get downloads a file of at most limit bytes.
func (c *connection) get(ctx context.Context, address, accept string, limit int64) (*web.Response, error) {
	if c.client == nil {
		if err := c.connect(ctx); err != nil {
			return nil, err
		}
	}

	return c.client.Get(ctx, web.Request{URL: address, Accept: accept, Limit: limit})
}

// connect creates the client.
func (c *connection) connect(ctx context.Context) error {
	var credentials web.Credentials

	if c.credentials != nil {
		var err error
		if credentials, err = c.credentials(ctx, c.server); err != nil {
			return err
		}
	}

	client, err := web.New(credentials, c.guard, c.origins...)
	if err != nil {
		return err
	}

	c.client = client
	c.hasToken = credentials.Token != ""

	return nil
}

// parseJSON decodes the response of an API. The error does not quote the response.
func parseJSON(address string, data []byte, into any) error {
	if err := limit.List(data, maxListValues); err != nil {
		return &web.ContentError{URL: address, Reason: err.Error() + "; check that this is the API of such a server"}
	}

	if err := json.Unmarshal(data, into); err != nil {
		return &web.ContentError{
			URL:    address,
			Reason: "is not the JSON that is expected; check that this is the API of such a server",
		}
	}

	return nil
}
