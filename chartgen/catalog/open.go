package catalog

import (
	"context"
	"net/url"
	"strings"

	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/chartgen/transport"
)

// The schemes of entries that are in registries. clusterctl lists such entries and cannot use them.
const (
	// artifactScheme is followed by the reference of an artifact: oci://registry.example.com/path[:tag][@digest].
	artifactScheme = "oci://"
	// imageScheme is followed by the reference of a container image.
	imageScheme = "image://"
)

// Access is how the sources of a catalog are accessed.
type Access struct {
	// Web returns how a web server is reached. Its credentials take precedence over tokens of the environment and the
	// configuration, which are used only over TLS, and not with a proxy or certificates of a source. Nil means
	// there are only the tokens.
	Web source.OptionsFunc
	// Registry returns what a registry is read with. It is called before the first request.
	Registry func(ctx context.Context, ref oci.Reference) (source.Access, error)
}

// Artifact returns the reference of the artifact that an entry names; empty if the entry is no artifact in a registry.
func (e Entry) Artifact() string {
	if !strings.HasPrefix(e.URL, artifactScheme) {
		return ""
	}

	return e.URL
}

// Image returns the reference of the container image that an entry names; empty if the entry is no image.
func (e Entry) Image() string {
	image, isImage := strings.CutPrefix(e.URL, imageScheme)
	if !isImage {
		return ""
	}

	return image
}

// Open returns the source of an entry: a registry, a web server, or a folder in clusterctl's local-repository
// layout. The error is of the kind transport.Refused.
func (c *Catalog) Open(e Entry, access Access) (*source.Source, error) {
	provider := source.Provider(e.Type, e.Name)

	if artifact := e.Artifact(); artifact != "" {
		return source.NewArtifact(artifact, provider, access.registry(artifact))
	}

	if image := e.Image(); image != "" {
		return source.NewImage(image, provider, access.registry(image))
	}

	u, err := url.Parse(e.URL)
	if err == nil && (u.Scheme == "" || u.Scheme == "file") {
		return source.NewComponentsFile(u.Path, provider), nil
	}

	return source.NewWebsite(e.URL, provider, c.withTokens(access.Web))
}

// registry returns the options of the source at a reference, which the source has checked when it uses them.
func (a Access) registry(address string) source.OCIOptions {
	return source.OCIOptions{Access: func(ctx context.Context) (source.Access, error) {
		ref, err := oci.Parse(address)
		if err != nil {
			return source.Access{}, err
		}

		return a.Registry(ctx, ref)
	}}
}

// withTokens adds the tokens of the environment and the configuration to options, which may be nil.
func (c *Catalog) withTokens(options source.OptionsFunc) source.OptionsFunc {
	return func(ctx context.Context, server source.Server) (transport.Options, error) {
		var found transport.Options

		if options != nil {
			var err error
			if found, err = options(ctx, server); err != nil {
				return found, err
			}
		}

		if server.TLS && !found.SetsTransport() {
			found.Credentials = transport.ChainCredentials(found.Credentials, transport.Token(server.Host, c.token(server)))
		}

		return found, nil
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
		if token, _ := c.Variable(name); token != "" {
			return token
		}
	}

	return ""
}
