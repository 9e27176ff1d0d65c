package charts

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"github.com/capstan-project/capstan/chartgen/catalog"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/cmd/capstan/internal/cli"
)

// accessFlags are the flags of commands that access registries.
type accessFlags struct {
	ca, config, username string
	passwordStdin        bool

	// password is read once, however many registries are accessed.
	password func() (string, error)
}

// addAccessFlags adds the flags to a command; in is read for the password.
func addAccessFlags(flags *pflag.FlagSet, in io.Reader) *accessFlags {
	f := &accessFlags{password: sync.OnceValues(func() (string, error) { return readPassword(in) })}
	flags.StringVar(&f.ca, "registry-ca", "", "File with additional CA certificates for registries.")
	flags.StringVar(&f.config, "registry-config", "",
		"File with credentials for registries, as written by docker login. Default: docker's own.")
	flags.StringVarP(&f.username, "username", "u", "", "User name for the registry; requires --password-stdin.")
	flags.BoolVar(&f.passwordStdin, "password-stdin", false, "Read the password of --username from standard input.")

	return f
}

// Client returns a client for registries. The user name and password are only used for the registry
// with the given host.
func (f *accessFlags) Client(host string) (*oci.Client, error) {
	hasUsername := f.username != ""
	if hasUsername != f.passwordStdin {
		return nil, errors.New("--username and --password-stdin must be used together; " +
			"alternatively, log in with docker login")
	}

	credentials, err := cli.RegistryCredentials(f.config)
	if err != nil {
		return nil, err
	}

	if hasUsername {
		password, err := f.password()
		if err != nil {
			return nil, err
		}

		static := transport.StaticCredentials(host, f.username, password)
		credentials = transport.ChainCredentials(static, credentials)
	}

	return cli.Registries(f.ca, credentials)
}

// readPassword reads a line.
func readPassword(in io.Reader) (string, error) {
	password, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the password: %w", err)
	}

	return strings.TrimRight(password, "\r\n"), nil
}

// catalogAccess returns how the sources of a catalog are accessed: registries with the client for each.
func catalogAccess(client func(registry string) (*oci.Client, error)) catalog.Access {
	return catalog.Access{Registry: func(_ context.Context, ref oci.Reference) (source.Access, error) {
		found, err := client(ref.Registry)

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
