package catalog

import (
	"context"
	"net/url"
	"path/filepath"

	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/chartgen/supply/web"
)

// Open makes the source of an entry: of a web server, or of a folder in clusterctl's
// local-repository layout. The given credentials come before the tokens of the environment and the
// configuration; nil means only those. Its error is a *source.AddressError.
func (c *Catalog) Open(e Entry, credentials source.CredentialsFunc) (source.Source, error) {
	if u, err := url.Parse(e.URL); err == nil && (u.Scheme == "" || u.Scheme == "file") {
		return source.NewDirectory(filepath.Dir(filepath.Dir(u.Path))) // of <label>/<version>/<file>
	}

	return source.NewWebsite(
		e.URL,
		source.Provider(e.Type, e.Name),
		c.WebOptions(func(ctx context.Context, server source.Server) (web.Credentials, error) {
			found := web.Credentials{}

			var err error
			if credentials != nil {
				found, err = credentials(ctx, server)
			}

			if found.Token == "" && found.Username == "" {
				found.Token = c.token(server)
			}

			return found, err
		}),
	)
}

// WebOptions say how web servers are asked, for sources beside the catalog's own.
func (c *Catalog) WebOptions(credentials source.CredentialsFunc) source.WebOptions {
	return source.WebOptions{Credentials: credentials, Overrides: c.Overrides, GoProxy: c.Variable("GOPROXY")}
}

// PublicToken is the token of the environment or the configuration for github.com and gitlab.com.
// Addresses of other servers must come from the catalog to get one: anybody who may write a
// resource could have it sent to a server of theirs.
func (c *Catalog) PublicToken(server source.Server) string {
	if server.Host != "github.com" && server.Host != "gitlab.com" {
		return ""
	}

	return c.token(server)
}

func (c *Catalog) token(server source.Server) string {
	for _, name := range server.Tokens {
		if token := c.Variable(variableName(name)); token != "" {
			return token
		}
	}

	return ""
}
