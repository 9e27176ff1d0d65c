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

// Keys of a Secret with credentials for a registry. The first ones are those of Kubernetes' own
// Secret types, the others cluster-api-operator's.
const (
	keyCA          = "ca.crt"
	keyToken       = "token"
	keyProxy       = "proxy"
	keyOCIUsername = "OCI_USERNAME"
	keyOCIPassword = "OCI_PASSWORD"
	keyOCIToken    = "OCI_ACCESS_TOKEN"
	keyOCIRefresh  = "OCI_REFRESH_TOKEN"
)

// Credentials finds the credentials for a registry, by its host and port; the zero credential when
// there are none.
type Credentials = auth.CredentialFunc

// FirstOf takes the first credentials that are there.
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

// DockerConfig reads the content of a docker configuration file, or of the key .dockerconfigjson of
// a Secret.
func ParseDockerConfig(data []byte) (Credentials, error) {
	store, err := credentials.NewMemoryStoreFromDockerConfig(data)
	if err != nil { // the cause may quote what it could not read
		return nil, errors.New(
			"not a docker configuration as `kubectl create secret docker-registry` makes it; its content is not shown here",
		)
	}

	return credentials.Credential(store), nil
}

// ConfigFile is a docker configuration file. It is read each time, so a mounted Secret that changes
// takes effect; now only to see whether it can be read.
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

// FromVariables are cluster-api-operator's OCI_* keys among a provider's variables, for one
// registry; nil when there are none.
func VariableCredentials(host string, data map[string][]byte) Credentials {
	own := auth.Credential{
		Username: string(data[keyOCIUsername]), Password: string(data[keyOCIPassword]),
		AccessToken: string(data[keyOCIToken]), RefreshToken: string(data[keyOCIRefresh]),
	}
	if own == auth.EmptyCredential {
		return nil
	}

	return auth.StaticCredential(host, own)
}

// UserConfig is the docker configuration of the person who runs this program, credential helpers
// included.
func UserDockerConfig() (Credentials, error) {
	store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the docker configuration: %w", err)
	}

	return credentials.Credential(store), nil
}

// Static are credentials for one registry.
func StaticCredentials(host, username, password string) Credentials {
	return auth.StaticCredential(host, auth.Credential{Username: username, Password: password})
}

// FromSecret reads a Secret's data as access to one registry: .dockerconfigjson, or username and
// password, or token, or cluster-api-operator's OCI_USERNAME, OCI_PASSWORD, OCI_ACCESS_TOKEN and
// OCI_REFRESH_TOKEN; ca.crt for the registry's certificate; tls.crt and tls.key for one's own;
// proxy for the proxy to go through. All are optional. No error holds any of it.
func OptionsFromSecret(host string, data map[string][]byte) (Options, error) {
	o := Options{
		CA:          data[keyCA],
		Certificate: data[corev1.TLSCertKey],
		Key:         data[corev1.TLSPrivateKeyKey],
		Proxy:       string(data[keyProxy]),
	}

	own := auth.Credential{
		Username:     firstValue(data, corev1.BasicAuthUsernameKey, keyOCIUsername),
		Password:     firstValue(data, corev1.BasicAuthPasswordKey, keyOCIPassword),
		AccessToken:  firstValue(data, keyToken, keyOCIToken),
		RefreshToken: firstValue(data, keyOCIRefresh),
	}
	if own != auth.EmptyCredential {
		o.Credentials = auth.StaticCredential(host, own)
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

// text is the first of these keys that is set.
func firstValue(data map[string][]byte, keys ...string) string {
	values := make([]string, 0, len(keys))
	for _, key := range keys {
		values = append(values, string(data[key]))
	}

	return cmp.Or(values...)
}
