package fetch

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/capstan-project/capstan/api/v1alpha2"
	"github.com/capstan-project/capstan/chartgen/oci"
	"github.com/capstan-project/capstan/chartgen/source"
	"github.com/capstan-project/capstan/chartgen/transport"
	"github.com/capstan-project/capstan/controllers/access"
	"github.com/capstan-project/capstan/controllers/problem"
)

// webOptions returns a function that finds out how a web server is reached. The credentials are those in the Secret of
// spec.fetchConfig.secretRef; without them, a token among the provider's variables, as in cluster-api-operator; without
// that, the operator's token that own returns, if the Secret does not change the transport. own may be nil. None of
// them is sent without TLS.
func (in *inputs) webOptions(own func(source.Server) string) source.OptionsFunc {
	return func(ctx context.Context, server source.Server) (transport.Options, error) {
		options, err := in.sourceOptions(ctx, server)
		if err != nil || options.Credentials != nil || !server.TLS {
			options.Credentials = withTLS(options.Credentials, server)
			return options, err
		}

		options.Credentials = in.variables(func(data map[string][]byte) transport.Credentials {
			return transport.TokenVariable(server.Host, data, server.Tokens...)
		})

		if own != nil && !options.SetsTransport() {
			options.Credentials = transport.ChainCredentials(options.Credentials, transport.Token(server.Host, own(server)))
		}

		return options, nil
	}
}

// registryOptions returns how a provider's registry is reached. The credentials are those in
// the Secret of spec.fetchConfig.secretRef; without them, the first of: those among the provider's
// variables, as in cluster-api-operator, the pull secrets of the provider's ServiceAccount, and the
// operator's, which are only for resources without an account and for the operator's own transport.
func (in *inputs) registryOptions(ctx context.Context, ref oci.Reference) (transport.Options, error) {
	server := serverOf(ref)

	options, err := in.sourceOptions(ctx, server)
	if err != nil {
		return options, err
	}

	if options.Credentials == nil {
		options.Credentials = transport.ChainCredentials(in.registryVariables(server), in.pullSecrets(server))

		if !in.tenant && !options.SetsTransport() && server.TLS {
			options.Credentials = transport.ChainCredentials(options.Credentials, in.Registry.Credentials)
		}
	}

	if options.CA == nil {
		options.CA = in.Registry.CA
	}

	options.Credentials = withTLS(options.Credentials, server)

	return options, nil
}

// catalogOptions returns how a registry in the catalog is reached. The credentials are those among the
// provider's variables, and without them the operator's, also for a resource with an account: the registry is the
// administrator's choice, and no field of the resource changes how it is reached.
func (in *inputs) catalogOptions(ref oci.Reference) transport.Options {
	server := serverOf(ref)
	credentials := transport.ChainCredentials(in.registryVariables(server), in.Registry.Credentials)

	return transport.Options{
		Credentials: withTLS(credentials, server), CA: in.Registry.CA, Guard: in.Policy.guard(),
	}
}

// serverOf returns the server of a registry.
func serverOf(ref oci.Reference) source.Server {
	return source.Server{Host: ref.Registry, TLS: !ref.PlainHTTP}
}

// withTLS returns an error instead of credentials for servers without TLS.
func withTLS(credentials transport.Credentials, server source.Server) transport.Credentials {
	if server.TLS || credentials == nil {
		return credentials
	}

	return func(ctx context.Context, host string) (auth.Credential, error) {
		found, err := credentials(ctx, host)
		if err == nil && found != auth.EmptyCredential {
			err = refuse("credentials are not sent to %s over plain HTTP; use https, or remove them", host)
		}

		return auth.EmptyCredential, err
	}
}

// sourceOptions returns how a server is reached with the Secret of spec.fetchConfig.secretRef, if there is one.
func (in *inputs) sourceOptions(ctx context.Context, server source.Server) (transport.Options, error) {
	var options transport.Options

	if reference, named := in.credentialsSecret(); named {
		var err error
		if options, err = in.secretOptions(ctx, reference, server); err != nil {
			return options, err
		}
	}

	options.Guard = in.Policy.guard()

	return options, in.Policy.checkProxy(options.Proxy)
}

// secretOptions returns how a server is reached with a Secret.
func (in *inputs) secretOptions(
	ctx context.Context, reference access.SecretReference, server source.Server,
) (transport.Options, error) {
	data, err := access.ReadSecret(ctx, in.reader, reference)
	if err != nil {
		return transport.Options{}, err
	}

	options, err := transport.FromSecret(server.Host, data, server.Tokens...)
	if err != nil {
		return options, refuse("Secret %s: %v", reference.NamespacedName, err)
	}

	return options, nil
}

// registryVariables returns the credentials for a registry among the provider's variables.
func (in *inputs) registryVariables(server source.Server) transport.Credentials {
	return in.variables(func(data map[string][]byte) transport.Credentials {
		return transport.RegistryVariables(server.Host, data)
	})
}

// variables returns credentials among the provider's variables, which are read when a server needs them. That the
// Secret does not exist is reported when the values of the variables are read.
func (in *inputs) variables(find func(data map[string][]byte) transport.Credentials) transport.Credentials {
	return func(ctx context.Context, host string) (auth.Credential, error) {
		reference, named := access.VariablesSecret(in.provider)
		if !named {
			return auth.EmptyCredential, nil
		}

		data, err := access.ReadSecret(ctx, in.reader, reference)
		if err != nil && !problem.Is(err, v1alpha2.SecretNotFoundReason) {
			return auth.EmptyCredential, err
		}

		return transport.Options{Credentials: find(data)}.Login(ctx, host)
	}
}

// pullSecrets returns the credentials in the pull secrets of the ServiceAccount that installs the
// provider. They are read when the registry asks for credentials, since an account need not be able
// to read itself for a public registry.
func (in *inputs) pullSecrets(server source.Server) transport.Credentials {
	return func(ctx context.Context, host string) (auth.Credential, error) {
		all, err := in.readPullSecrets(ctx, server)
		if err != nil {
			return auth.EmptyCredential, err
		}

		return transport.ChainCredentials(all...)(ctx, host)
	}
}

// readPullSecrets reads the pull secrets. As for pods, those that do not exist or cannot be used are
// skipped.
func (in *inputs) readPullSecrets(ctx context.Context, server source.Server) ([]transport.Credentials, error) {
	account := &corev1.ServiceAccount{}

	name, named := in.Readers.Account(in.provider)
	if !named {
		name.Name = "default"
	}

	err := in.reader.Get(ctx, name, account)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}

	if err != nil {
		return nil, fmt.Errorf("read ServiceAccount %s: %w", name, err)
	}

	var all []transport.Credentials

	for _, ref := range account.ImagePullSecrets {
		options, err := in.secretOptions(ctx, access.SecretReference{NamespacedName: in.local(ref.Name)}, server)
		if problem.Is(err, v1alpha2.MissingPermissionsReason) {
			return nil, err
		}

		all = append(all, options.Credentials)
	}

	return all, nil
}
