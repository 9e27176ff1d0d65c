package catalog

import (
	"context"
	"net/url"

	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/chartgen/supply/transport"
	"github.com/capstan-project/capstan/chartgen/supply/web"
)

// Open returns the source of an entry: a web server, or a folder in clusterctl's local-repository
// layout. Credentials take precedence over tokens of the environment and the configuration, which are
// used only over TLS, and not with a proxy or certificates of the credentials; nil means there are only
// the tokens. The guard restricts connections; nil for no restriction. The error is a
// *source.AddressError.
func (c *Catalog) Open(
	e Entry, credentials source.CredentialsFunc, guard *transport.Guard,
) (source.Source, error) {
	u, err := url.Parse(e.URL)
	if err == nil && (u.Scheme == "" || u.Scheme == "file") {
		return source.NewComponentsFile(u.Path, source.Provider(e.Type, e.Name)), nil
	}

	withToken := func(ctx context.Context, server source.Server) (web.Credentials, error) {
		var found web.Credentials

		if credentials != nil {
			var err error
			if found, err = credentials(ctx, server); err != nil {
				return found, err
			}
		}

		if !found.HasLogin() && !found.SetsTransport() && server.TLS {
			found.Token = c.token(server)
		}

		return found, nil
	}

	return source.NewWebsite(e.URL, source.Provider(e.Type, e.Name), c.WebOptions(withToken, guard))
}

// WebOptions returns the options of the configuration for sources on web servers, including those
// that are not in the catalog.
func (c *Catalog) WebOptions(credentials source.CredentialsFunc, guard *transport.Guard) source.WebOptions {
	return source.WebOptions{
		Credentials: credentials,
		Overrides:   c.Overrides,
		GoProxy:     c.Variable("GOPROXY"),
		Guard:       guard,
	}
}

// PublicToken returns the token of the environment or the configuration if the server is github.com
// or gitlab.com over TLS. Other servers get one only if their address is in the catalog: a user who may write
// a resource could otherwise have the token sent to a server of their choice.
func (c *Catalog) PublicToken(server source.Server) string {
	if !server.TLS || server.Host != "github.com" && server.Host != "gitlab.com" {
		return ""
	}

	return c.token(server)
}

// token returns the first of the server's token variables that is set.
func (c *Catalog) token(server source.Server) string {
	for _, name := range server.Tokens {
		if token := c.Variable(variableName(name)); token != "" {
			return token
		}
	}

	return ""
}
