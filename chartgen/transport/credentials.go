package transport

import (
	"cmp"
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
)

// Credentials returns the credentials for a server, given as host[:port]; auth.EmptyCredential for none.
type Credentials = auth.CredentialFunc

// Login returns the credentials for a server, given as host[:port].
func (o Options) Login(ctx context.Context, host string) (auth.Credential, error) {
	if o.Credentials == nil {
		return auth.EmptyCredential, nil
	}

	return o.Credentials(ctx, host)
}

// ChainCredentials tries several sources of credentials in turn, until one has some or fails. Each may be nil.
func ChainCredentials(all ...Credentials) Credentials {
	return func(ctx context.Context, host string) (auth.Credential, error) {
		for _, c := range all {
			if found, err := (Options{Credentials: c}).Login(ctx, host); err != nil || found != auth.EmptyCredential {
				return found, err
			}
		}

		return auth.EmptyCredential, nil
	}
}

// Token returns a token for one server; nil without a token.
func Token(host, token string) Credentials {
	if token == "" {
		return nil
	}

	return auth.StaticCredential(host, auth.Credential{AccessToken: token})
}

// DockerConfigFile returns the credentials of a docker configuration file. The file is read again
// for every registry, so that changes of a mounted Secret take effect. The error is about its
// present content.
func DockerConfigFile(path string) (Credentials, error) {
	load := func() (Credentials, error) {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}

		found, err := parseDockerConfig(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}

		return found, nil
	}

	if _, err := load(); err != nil {
		return nil, err
	}

	return func(ctx context.Context, host string) (auth.Credential, error) {
		current, err := load()
		if err != nil {
			return auth.EmptyCredential, err
		}

		return current(ctx, host)
	}, nil
}

// UserDockerConfig returns the credentials in the current user's docker configuration and in its credential helpers.
func UserDockerConfig() (Credentials, error) {
	store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the docker configuration: %w", err)
	}

	return credentials.Credential(store), nil
}

// Keys of a Secret besides those of Kubernetes' own Secret types. cluster-api-operator has the last ones among a
// provider's variables.
const (
	keyCA    = "ca.crt"
	keyProxy = "proxy"
	keyToken = "token"

	keyOCIUsername = "OCI_USERNAME"
	keyOCIPassword = "OCI_PASSWORD"
	keyOCIToken    = "OCI_ACCESS_TOKEN"
	keyOCIRefresh  = "OCI_REFRESH_TOKEN"
)

// FromSecret reads how to reach one server, given as host[:port], from the data of a Secret. All keys are optional:
//
//   - username and password, token or one of the given names of a token, or cluster-api-operator's OCI_USERNAME,
//     OCI_PASSWORD, OCI_ACCESS_TOKEN and OCI_REFRESH_TOKEN; otherwise .dockerconfigjson
//   - ca.crt for the authority of the server's certificate
//   - tls.crt and tls.key for the client certificate
//   - proxy for the URL of a proxy
//
// Errors never contain any of the data.
func FromSecret(host string, data map[string][]byte, tokens ...string) (Options, error) {
	o := Options{
		CA:          data[keyCA],
		Certificate: data[corev1.TLSCertKey],
		Key:         data[corev1.TLSPrivateKeyKey],
		Proxy:       string(data[keyProxy]),
	}

	login := auth.Credential{
		Username:     firstValue(data, corev1.BasicAuthUsernameKey, keyOCIUsername),
		Password:     firstValue(data, corev1.BasicAuthPasswordKey, keyOCIPassword),
		AccessToken:  cmp.Or(firstValue(data, keyToken, keyOCIToken), firstValue(data, tokens...)),
		RefreshToken: firstValue(data, keyOCIRefresh),
	}
	if login != auth.EmptyCredential {
		o.Credentials = auth.StaticCredential(host, login)
		return o, nil
	}

	if config, ok := data[corev1.DockerConfigJsonKey]; ok {
		var err error
		if o.Credentials, err = parseDockerConfig(config); err != nil {
			return Options{}, fmt.Errorf("key %s: %w", corev1.DockerConfigJsonKey, err)
		}
	}

	return o, nil
}

// RegistryVariables returns the credentials for a registry, given as host[:port], among a provider's variables, as
// cluster-api-operator names them. It returns nil if there are none.
func RegistryVariables(host string, variables map[string][]byte) Credentials {
	login := auth.Credential{
		Username:     string(variables[keyOCIUsername]),
		Password:     string(variables[keyOCIPassword]),
		AccessToken:  string(variables[keyOCIToken]),
		RefreshToken: string(variables[keyOCIRefresh]),
	}
	if login == auth.EmptyCredential {
		return nil
	}

	return auth.StaticCredential(host, login)
}

// TokenVariable returns the first token for a server, given as host[:port], among a provider's variables; nil if there
// is none.
func TokenVariable(host string, variables map[string][]byte, names ...string) Credentials {
	return Token(host, firstValue(variables, names...))
}

// firstValue returns the first value that is not empty.
func firstValue(data map[string][]byte, keys ...string) string {
	for _, key := range keys {
		if value := data[key]; len(value) > 0 {
			return string(value)
		}
	}

	return ""
}
