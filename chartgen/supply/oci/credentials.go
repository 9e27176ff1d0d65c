package oci

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
)

// Keys of a Secret with credentials for a registry: those of Kubernetes' own Secret types, and
// those of cluster-api-operator.
const (
	keyCA          = "ca.crt"
	keyToken       = "token"
	keyProxy       = "proxy"
	keyOCIUsername = "OCI_USERNAME"
	keyOCIPassword = "OCI_PASSWORD"
	keyOCIToken    = "OCI_ACCESS_TOKEN"
	keyOCIRefresh  = "OCI_REFRESH_TOKEN"
)

// Credentials returns the credentials for a registry, given as host[:port]. It returns
// auth.EmptyCredential if there are none.
type Credentials = auth.CredentialFunc

// ChainCredentials tries several sources of credentials in turn, until one has some or fails.
func ChainCredentials(all ...Credentials) Credentials {
	return func(ctx context.Context, host string) (auth.Credential, error) {
		for _, c := range all {
			if found, err := c(ctx, host); err != nil || found != auth.EmptyCredential {
				return found, err
			}
		}

		return auth.EmptyCredential, nil
	}
}

// StaticCredentials returns a username and a password for one registry.
func StaticCredentials(host, username, password string) Credentials {
	return auth.StaticCredential(host, auth.Credential{Username: username, Password: password})
}

// ParseDockerConfig reads the content of a docker configuration file, or of the key
// .dockerconfigjson of a Secret. Errors never contain any of it.
func ParseDockerConfig(data []byte) (Credentials, error) {
	store, err := credentials.NewMemoryStoreFromDockerConfig(data)
	if err != nil { // it may quote the content
		return nil, errors.New(
			"not a docker configuration as `kubectl create secret docker-registry` writes it; its content is not shown here",
		)
	}

	return credentials.Credential(store), nil
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

		found, err := ParseDockerConfig(data)
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

// UserDockerConfig returns the credentials of the current user's docker configuration, including
// those of credential helpers.
func UserDockerConfig() (Credentials, error) {
	store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the docker configuration: %w", err)
	}

	return credentials.Credential(store), nil
}

// VariableCredentials returns the credentials for one registry in the OCI_* keys of
// cluster-api-operator, which are mixed with a provider's variables. It returns nil if there are
// none.
func VariableCredentials(host string, data map[string][]byte) Credentials {
	found := auth.Credential{
		Username:     string(data[keyOCIUsername]),
		Password:     string(data[keyOCIPassword]),
		AccessToken:  string(data[keyOCIToken]),
		RefreshToken: string(data[keyOCIRefresh]),
	}
	if found == auth.EmptyCredential {
		return nil
	}

	return auth.StaticCredential(host, found)
}

// OptionsFromSecret reads how to access one registry from the data of a Secret. All keys are
// optional:
//
//   - username and password, token, or cluster-api-operator's OCI_USERNAME, OCI_PASSWORD,
//     OCI_ACCESS_TOKEN and OCI_REFRESH_TOKEN; otherwise .dockerconfigjson
//   - ca.crt for the authority of the registry's certificate
//   - tls.crt and tls.key for the client certificate
//   - proxy for the URL of a proxy
//
// Errors never contain any of the data.
func OptionsFromSecret(host string, data map[string][]byte) (Options, error) {
	o := Options{
		CA:          data[keyCA],
		Certificate: data[corev1.TLSCertKey],
		Key:         data[corev1.TLSPrivateKeyKey],
		Proxy:       string(data[keyProxy]),
	}

	static := auth.Credential{
		Username:     firstValue(data, corev1.BasicAuthUsernameKey, keyOCIUsername),
		Password:     firstValue(data, corev1.BasicAuthPasswordKey, keyOCIPassword),
		AccessToken:  firstValue(data, keyToken, keyOCIToken),
		RefreshToken: firstValue(data, keyOCIRefresh),
	}
	if static != auth.EmptyCredential {
		o.Credentials = auth.StaticCredential(host, static)
		return o, nil
	}

	if config, ok := data[corev1.DockerConfigJsonKey]; ok {
		var err error
		if o.Credentials, err = ParseDockerConfig(config); err != nil {
			return Options{}, fmt.Errorf("key %s: %w", corev1.DockerConfigJsonKey, err)
		}
	}

	return o, nil
}

// firstValue returns the first value that is not empty.
func firstValue(data map[string][]byte, keys ...string) string {
	values := make([]string, 0, len(keys))
	for _, key := range keys {
		values = append(values, string(data[key]))
	}

	return cmp.Or(values...)
}
