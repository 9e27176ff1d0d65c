package charts

import (
	"context"
	"strings"

	"github.com/spf13/pflag"

	"github.com/capstan-project/capstan/chartgen/catalog"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// accessFlags are the flags of commands that access registries.
type accessFlags struct{ ca, config string }

// addAccessFlags adds the flags to a command.
func addAccessFlags(flags *pflag.FlagSet) *accessFlags {
	f := &accessFlags{}
	flags.StringVar(&f.ca, "registry-ca", "", "File with additional CA certificates for registries.")
	flags.StringVar(&f.config, "registry-config", "",
		"File with credentials for registries, as written by docker login. Default: docker's own.")

	return f
}

// Client returns a client for registries.
func (f *accessFlags) Client() (*oci.Client, error) { return cli.Registries(f.ca, f.config) }

// catalogAccess returns how the sources of a catalog are accessed: registries with a client.
func catalogAccess(client func() (*oci.Client, error)) catalog.Access {
	return catalog.Access{Registry: func(context.Context, oci.Reference) (source.Access, error) {
		found, err := client()

		return source.Access{Client: found}, err
	}}
}

// publicTokens returns how web servers are accessed that an argument or a resource names: with the tokens for public
// servers of a catalog.
func publicTokens(known *catalog.Catalog) source.OptionsFunc {
	return func(_ context.Context, server source.Server) (transport.Options, error) {
		return transport.Options{Credentials: transport.Token(server.Host, known.PublicToken(server))}, nil
	}
}

// isReference reports whether an argument refers to a registry, and not to a file.
func isReference(argument string) bool {
	return strings.HasPrefix(argument, "oci://") || strings.HasPrefix(argument, "http://")
}
