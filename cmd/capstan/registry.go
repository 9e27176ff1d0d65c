package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/capstan-project/capstan/chartgen/supply/oci"
)

// registryFlags say how registries are reached.
type registryFlags struct {
	ca, config, username string
	passwordStdin        bool
}

func (f *registryFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.ca, "ca-file", "", "a file with the certificate of the authority that signed the registry's")
	flags.StringVar(
		&f.config,
		"registry-config",
		"",
		"a file with credentials, as docker login and helm registry login write it (default: docker's own)",
	)
	flags.StringVarP(&f.username, "username", "u", "", "user name for the registry")
	flags.BoolVar(&f.passwordStdin, "password-stdin", false, "read the password of --username from standard input")
}

// client makes the client. The user name and password are for one registry, all others get what the
// configuration has for them.
func (f *registryFlags) client(registry string, in io.Reader) (*oci.Client, error) {
	var (
		o   oci.Options
		err error
	)
	if f.ca != "" {
		if o.CA, err = os.ReadFile(f.ca); err != nil {
			return nil, err
		}
	}

	if o.Credentials, err = f.credentials(registry, in); err != nil {
		return nil, err
	}

	return oci.NewClient(o)
}

func (f *registryFlags) credentials(registry string, in io.Reader) (oci.Credentials, error) {
	if (f.username != "") != f.passwordStdin {
		return nil, errors.New("--username and --password-stdin belong together; give both, or log in with docker login")
	}

	configured, err := f.configured()
	if err != nil || f.username == "" {
		return configured, err
	}

	password, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read the password: %w", err)
	}

	return oci.ChainCredentials(oci.StaticCredentials(registry, f.username, strings.TrimRight(password, "\r\n")), configured), nil
}

func (f *registryFlags) configured() (oci.Credentials, error) {
	if f.config == "" {
		return oci.UserDockerConfig()
	}

	return oci.DockerConfigFile(f.config)
}

// isReference reports whether an argument names something in a registry rather than a file.
func isReference(arg string) bool {
	return strings.HasPrefix(arg, "oci://") || strings.HasPrefix(arg, "http://")
}

// pullChart reads a chart from a registry.
func (f *registryFlags) pullChart(ctx context.Context, arg string, in io.Reader) (*oci.Chart, error) {
	ref, err := oci.Parse(arg)
	if err != nil {
		return nil, err
	}

	if ref.Identifier() == "" {
		return nil, fmt.Errorf("%s names no version; add it as %s:1.2.3, without its v", arg, ref)
	}

	client, err := f.client(ref.Registry, in)
	if err != nil {
		return nil, err
	}

	return client.PullChart(ctx, ref)
}
