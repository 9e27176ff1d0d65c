package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-project/capstan/chartgen/supply/source"
	"github.com/capstan-project/capstan/chartgen/supply/web"
	"github.com/capstan-project/capstan/controllers/access"
)

// The keys of the Secret of spec.fetchConfig.secretRef. A token may also have one of clusterctl's
// names, such as GITHUB_TOKEN.
const (
	tokenKey       = "token"
	caKey          = "ca.crt"
	certificateKey = "tls.crt"
	privateKeyKey  = "tls.key"
	proxyKey       = "proxy"
)

// credentials returns a function that finds the credentials for a server: those in the Secret of
// spec.fetchConfig.secretRef; without a login there, a token among the provider's variables, as in
// cluster-api-operator; without that, the operator's token that own returns, if the Secret does not
// change the transport. own may be nil. None of them is sent without TLS.
func (in *inputs) credentials(own func(source.Server) string) source.CredentialsFunc {
	return func(ctx context.Context, server source.Server) (web.Credentials, error) {
		found, err := in.secretCredentials(ctx, server)
		if err != nil {
			return web.Credentials{}, err
		}

		if err := in.Policy.checkProxy(found.Proxy); err != nil {
			return web.Credentials{}, err
		}

		switch {
		case found.HasLogin() && !server.TLS:
			return web.Credentials{}, &ConfigError{fmt.Sprintf("the credentials in the Secret of spec.fetchConfig.secretRef "+
				"are not sent to %s over plain HTTP; use https, or remove them from the Secret", server.Host)}
		case found.HasLogin(), !server.TLS:
			return found, nil
		}

		found.Token, err = in.variablesToken(ctx, server)
		if err != nil {
			return web.Credentials{}, err
		}

		if found.Token == "" && own != nil && !found.SetsTransport() {
			found.Token = own(server)
		}

		return found, nil
	}
}

// secretCredentials returns the credentials in the Secret of spec.fetchConfig.secretRef.
func (in *inputs) secretCredentials(ctx context.Context, server source.Server) (web.Credentials, error) {
	reference, named := in.credentialsSecret()
	if !named {
		return web.Credentials{}, nil
	}

	data, err := access.ReadSecret(ctx, in.reader, reference)
	if err != nil {
		return web.Credentials{}, err
	}

	return web.Credentials{
		Username:    string(data[corev1.BasicAuthUsernameKey]),
		Password:    string(data[corev1.BasicAuthPasswordKey]),
		Token:       cmp.Or(string(data[tokenKey]), token(data, server)),
		CA:          data[caKey],
		Certificate: data[certificateKey],
		Key:         data[privateKeyKey],
		Proxy:       string(data[proxyKey]),
	}, nil
}

// variablesToken returns the token for a server among the provider's variables; empty if there is
// none. That the Secret with the variables does not exist is reported when the variables are read.
func (in *inputs) variablesToken(ctx context.Context, server source.Server) (string, error) {
	reference, named := access.VariablesSecret(in.provider)
	if !named || len(server.Tokens) == 0 {
		return "", nil
	}

	data, err := access.ReadSecret(ctx, in.reader, reference)

	var notFound *access.SecretNotFoundError
	if err != nil && !errors.As(err, &notFound) {
		return "", err
	}

	return token(data, server), nil
}

// token returns the token for a server in a Secret.
func token(data map[string][]byte, server source.Server) string {
	for _, name := range server.Tokens {
		if value := data[name]; len(value) > 0 {
			return string(value)
		}
	}

	return ""
}
